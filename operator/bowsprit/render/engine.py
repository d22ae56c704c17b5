"""The engine container: vLLM's command line, environment and probes for one rank of a replica.

The command is in exec form: no shell sees what users write. Kubernetes expands `$(NAME)` in arguments, which
the user's own may use and Bowsprit's must not, so a `$` in them is doubled.
"""

from __future__ import annotations

from typing import Any

from bowsprit.api import defaults
from bowsprit.api.names import ENGINE_CONTAINER, HTTP_PORT
from bowsprit.api.v1alpha1 import Capacity, Engine, ModelDeploymentSpec
from bowsprit.plan.result import Layout
from bowsprit.render import budgets, engine_args, names, plugins, wishes
from bowsprit.render.canonical import canonical_json
from bowsprit.render.layouts import layout_data
from bowsprit.render.model_source import MODEL_MOUNT, ModelSource, model_source
from bowsprit.render.revision import Revision

HOME = "/home/vllm"
SHARED_MEMORY_VOLUME, HOME_VOLUME, MODEL_VOLUME = "shared-memory", "home", "model"

CONTAINER_SECURITY: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}

_WAIT_FOR_HEAD = (
    "import os, socket, time\n"
    "while True:\n"
    "    try:\n"
    f"        socket.create_connection((os.environ['LWS_LEADER_ADDRESS'], {HTTP_PORT}), 2).close()\n"
    "    except OSError:\n"
    "        break\n"
    "    time.sleep(1)\n"
)
"""A worker that stops before its head fails every request that the head is still draining; when the head's
port is closed there is nothing left to wait for."""


def engine_container(name: str, revision: Revision, layout: Layout, role_args: list[str]) -> dict[str, Any]:
    """Of any rank; `role_args` are the arguments that depend on it, last because the last of two spellings
    wins. The GPUs are added on top (pod.py)."""
    spec = revision.spec
    engine = spec.engine or Engine()
    return {
        "name": ENGINE_CONTAINER,
        "image": engine.image or defaults.ENGINE_IMAGE,
        "command": ["vllm", "serve"],
        "args": [*_arguments(name, spec, layout), *(engine.args or ()), *role_args],
        "env": _environment(revision, layout),
        "resources": engine.resources or {},
        "volumeMounts": _mounts(spec),
        "securityContext": CONTAINER_SECURITY,
    }


def head_extras(spec: ModelDeploymentSpec, weight_bytes: int | None) -> dict[str, Any]:
    """Port, probes and pre-stop of the pod that answers requests."""
    scheme = "HTTPS" if engine_args.has_flag(wishes.args_of(spec), "--ssl-certfile") else "HTTP"
    period = budgets.PROBE_PERIOD_SECONDS

    def probe(path: str, failures: int) -> dict[str, Any]:
        get = {"path": path, "port": HTTP_PORT, "scheme": scheme}
        return {"httpGet": get, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}

    return {
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        "startupProbe": probe("/health", budgets.startup_failures(weight_bytes)),
        # Six misses: the API server's loop lags under load, and a restart costs minutes of loading.
        "livenessProbe": probe("/health", 6),
        "readinessProbe": probe("/health" if _has_api_key(spec) else "/v1/models", 3),
        "lifecycle": {"preStop": {"sleep": {"seconds": budgets.PRE_STOP_SECONDS}}},
    }


def worker_extras() -> dict[str, Any]:
    """A worker has no HTTP port: its group is restarted when its container exits."""
    return {"lifecycle": {"preStop": {"exec": {"command": ["python3", "-c", _WAIT_FOR_HEAD]}}}}


def head_args(layout: Layout) -> list[str]:
    return [] if layout.pods == 1 else [*_group_args(layout), "--node-rank", "0"]


def worker_args(spec: ModelDeploymentSpec, layout: Layout) -> list[str]:
    """LeaderWorkerSet gives each worker its index, from 1. The user's number of API servers is the head's:
    vLLM refuses any but 0 beside --headless (entrypoints/cli/serve.py)."""
    given = wishes.args_of(spec)
    asked = any(engine_args.has_flag(given, flag) for flag in ("--api-server-count", "-asc"))
    no_servers = ["--api-server-count", "0"] if asked else []
    return [*_group_args(layout), "--node-rank", "$(LWS_WORKER_INDEX)", "--headless", *no_servers]


def _group_args(layout: Layout) -> list[str]:
    return [
        *("--nnodes", str(layout.pods)),
        *("--master-addr", "$(LWS_LEADER_ADDRESS)"),
        *("--master-port", str(names.MASTER_PORT)),
    ]


def _arguments(name: str, spec: ModelDeploymentSpec, layout: Layout) -> list[str]:
    source = _source(spec)
    own = [
        source.argument,
        *("--served-model-name", spec.model.name or name),
        *_source_args(spec, source),
        *_architecture_args(spec),
        *("--tensor-parallel-size", str(layout.tensor)),
        *("--pipeline-parallel-size", str(layout.pipeline)),
        *(["--distributed-executor-backend", "mp"] if layout.gpus > 1 else []),
        *_capacity_args(spec),
        *("--port", str(HTTP_PORT)),
    ]
    return [argument.replace("$", "$$") for argument in own]


def _source(spec: ModelDeploymentSpec) -> ModelSource:
    # A URI that the API refuses anyway is handed to vLLM as it is.
    return model_source(spec.model.uri) or ModelSource(spec.model.uri)


def _source_args(spec: ModelDeploymentSpec, source: ModelSource) -> list[str]:
    if source.takes_revision and spec.model.revision:
        return ["--revision", spec.model.revision]
    if source.streamed:
        return ["--load-format", "runai_streamer"]
    return []


def _architecture_args(spec: ModelDeploymentSpec) -> list[str]:
    overrides = wishes.hf_overrides_of(spec)
    return ["--hf-overrides", canonical_json(overrides)] if overrides else []


def _capacity_args(spec: ModelDeploymentSpec) -> list[str]:
    """What the planner reckoned with is said outright, so that the engine's own defaults cannot differ from
    it."""
    capacity, demand, given = spec.capacity or Capacity(), wishes.demand_of(spec), wishes.args_of(spec)
    args = ["--gpu-memory-utilization", f"{demand.utilization:g}"]
    if capacity.max_model_len:
        args += ["--max-model-len", str(capacity.max_model_len)]
    if capacity.kv_cache_dtype:
        args += ["--kv-cache-dtype", capacity.kv_cache_dtype]
    if demand.cpu_offload_gib:
        args += ["--cpu-offload-gb", f"{demand.cpu_offload_gib:g}"]
    if demand.expert_parallel:
        args += ["--enable-expert-parallel"]
    if not engine_args.has_flag(given, "--max-num-batched-tokens"):
        args += ["--max-num-batched-tokens", str(demand.max_batched_tokens)]
    if not engine_args.has_flag(given, "--max-num-seqs"):
        args += ["--max-num-seqs", str(demand.max_sequences)]
    return [*args, "--shutdown-timeout", str(budgets.stopping(spec).drain_seconds)]


def _environment(revision: Revision, layout: Layout) -> list[dict[str, Any]]:
    spec = revision.spec
    layers = ",".join(str(count) for count in layout.layer_partition)
    env: list[dict[str, Any]] = [
        {"name": "HOME", "value": HOME},
        {"name": "USER", "value": "vllm"},  # getpass: the uid need not be in the image's passwd
        {"name": "HF_HOME", "value": f"{HOME}/.cache/huggingface"},
        {"name": "VLLM_CACHE_ROOT", "value": f"{HOME}/.cache/vllm"},
        {"name": "XDG_CACHE_HOME", "value": f"{HOME}/.cache"},
        {"name": "XDG_CONFIG_HOME", "value": f"{HOME}/.config"},
        {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "VLLM_ENGINE_READY_TIMEOUT_S", "value": str(budgets.ready_seconds(revision.weight_bytes))},
        # Reporting a cluster's models to a third party is the cluster owner's decision: "0" in engine.env
        # allows it.
        {"name": "VLLM_NO_USAGE_STATS", "value": "1"},
        {"name": names.LAYOUT_ENV, "value": canonical_json(layout_data(layout))},
        *plugins.plugin_env(spec.plugins or ()),
    ]
    if layout.pipeline > 1 and layers:
        env.append({"name": "VLLM_PP_LAYER_PARTITION", "value": layers})
    if spec.model.token_secret_ref:
        reference = spec.model.token_secret_ref.model_dump()
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    given = list(spec.engine.env or ()) if spec.engine else []
    replaced = {variable.get("name") for variable in given}
    return [*(variable for variable in env if variable["name"] not in replaced), *given]


def _mounts(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    mounts = [
        {"name": SHARED_MEMORY_VOLUME, "mountPath": "/dev/shm"},
        {"name": HOME_VOLUME, "mountPath": HOME},
        *plugins.plugin_mounts(spec.plugins or ()),
    ]
    if _source(spec).claim:
        mounts.append({"name": MODEL_VOLUME, "mountPath": MODEL_MOUNT, "readOnly": True})
    return mounts


def volumes(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """Of every pod of the model."""
    size = (spec.engine.shared_memory if spec.engine else None) or defaults.SHARED_MEMORY
    found: list[dict[str, Any]] = [
        {"name": SHARED_MEMORY_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}},
        {"name": HOME_VOLUME, "emptyDir": {}},
        *plugins.plugin_volumes(spec.plugins or ()),
    ]
    claim = _source(spec).claim
    if claim:
        source = {"claimName": claim, "readOnly": True}
        found.append({"name": MODEL_VOLUME, "persistentVolumeClaim": source})
    return found


def _has_api_key(spec: ModelDeploymentSpec) -> bool:
    """With a key /v1 answers 401 to a probe, and /health does not ask for it."""
    variables = (spec.engine.env if spec.engine else None) or ()
    in_env = any(variable.get("name") == "VLLM_API_KEY" for variable in variables)
    return in_env or engine_args.has_flag(wishes.args_of(spec), "--api-key")
