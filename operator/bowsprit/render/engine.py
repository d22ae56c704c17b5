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
from bowsprit.render import budgets, engine_args, names, resources, runtime, surroundings, wishes
from bowsprit.render.canonical import canonical_json
from bowsprit.render.layouts import layout_data
from bowsprit.render.model_source import ModelSource
from bowsprit.render.revision import Revision


def engine_container(name: str, revision: Revision, layout: Layout, role_args: list[str]) -> dict[str, Any]:
    """Of any rank; `role_args` are the arguments that depend on it, last because the last of two spellings
    wins. The GPUs are added on top (pod.py)."""
    spec = revision.spec
    engine = spec.engine or Engine()
    return {
        "name": ENGINE_CONTAINER,
        "image": surroundings.engine_image(revision),
        "command": runtime.command("launch"),
        "args": [*arguments(name, spec, _parallel_args(layout)), *(engine.args or ()), *role_args],
        "env": _environment(revision, layout),
        "resources": resources.engine_resources(spec, layout, revision.weight_bytes),
        "volumeMounts": surroundings.mounts(spec),
        "securityContext": runtime.CONTAINER_SECURITY,
    }


def head_extras(name: str, spec: ModelDeploymentSpec, weight_bytes: int | None) -> dict[str, Any]:
    """Port, probes and pre-stop of the pod that answers requests.

    /health needs no API key. Ready is more than healthy: the model is listed under its served name.
    """
    scheme = _scheme(spec)
    health = {"httpGet": {"path": "/health", "port": HTTP_PORT, "scheme": scheme}}
    listed = {"exec": {"command": runtime.ready_command(scheme, served_name(name, spec))}}
    return {
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        "startupProbe": {
            **_probe(health, budgets.startup_failures(weight_bytes)),
            "periodSeconds": budgets.STARTUP_PERIOD_SECONDS,
        },
        # Six misses: the API server's loop lags under load, and a restart costs minutes of loading.
        "livenessProbe": _probe(health, 6),
        "readinessProbe": _probe(listed, 3),
        "lifecycle": {"preStop": {"exec": {"command": _leave_command(spec)}}},
    }


def verify_env(name: str, spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """Of the pod that answers requests: what the runtime asks it before it is ready."""
    verify = spec.rollout.verify if spec.rollout else None
    if verify is None:
        return []
    asked = {
        "url": runtime.server_url(_scheme(spec)),
        "model": served_name(name, spec),
        "path": verify.path or defaults.VERIFY_PATH,
        "prompt": verify.prompt,
        "max_tokens": verify.max_tokens or defaults.VERIFY_MAX_TOKENS,
        "contains": verify.contains or "",
    }
    # Kubernetes expands $(NAME) in values.
    return [{"name": names.VERIFY_ENV, "value": canonical_json(asked).replace("$", "$$")}]


def _scheme(spec: ModelDeploymentSpec) -> str:
    return "HTTPS" if engine_args.has_flag(wishes.args_of(spec), "--ssl-certfile") else "HTTP"


def _leave_command(spec: ModelDeploymentSpec) -> list[str]:
    most = budgets.PRE_STOP_SECONDS + budgets.stopping(spec).drain_seconds
    return runtime.command("leave", str(budgets.PRE_STOP_SECONDS), str(most))


def worker_extras() -> dict[str, Any]:
    """A worker has no HTTP port: the runtime says whether it lives, and its group is restarted when its
    container exits. One that stops before its head fails every request that the head is still draining."""
    return {
        "livenessProbe": _probe({"exec": {"command": runtime.command("alive")}}, 6),
        "lifecycle": {"preStop": {"exec": {"command": runtime.command("drain", str(HTTP_PORT))}}},
    }


def _probe(handler: dict[str, Any], failures: int) -> dict[str, Any]:
    # A command of the runtime has to start a Python first, on a machine that may be busy.
    seconds = budgets.PROBE_PERIOD_SECONDS
    return {**handler, "periodSeconds": seconds, "timeoutSeconds": seconds, "failureThreshold": failures}


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


def arguments(name: str, spec: ModelDeploymentSpec, parallel: list[str]) -> list[str]:
    """What Bowsprit itself says to `vllm serve`; the user's arguments come after it."""
    source = surroundings.source_of(spec)
    own = [
        source.argument,
        *("--served-model-name", served_name(name, spec)),
        *_source_args(spec, source),
        *_architecture_args(spec),
        *parallel,
        *_capacity_args(spec),
        *("--port", str(HTTP_PORT)),
    ]
    return [argument.replace("$", "$$") for argument in own]


def served_name(name: str, spec: ModelDeploymentSpec) -> str:
    """What clients write as `model`; `name` is the ModelDeployment's."""
    return spec.model.name or name


def _parallel_args(layout: Layout) -> list[str]:
    return [
        *("--tensor-parallel-size", str(layout.tensor)),
        *("--pipeline-parallel-size", str(layout.pipeline)),
        *(["--distributed-executor-backend", "mp"] if layout.ranks > 1 else []),
    ]


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
        *surroundings.common_env(spec),
        {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "VLLM_ENGINE_READY_TIMEOUT_S", "value": str(budgets.ready_seconds(revision.weight_bytes))},
        {"name": names.LAYOUT_ENV, "value": canonical_json(layout_data(layout))},
    ]
    if layout.pipeline > 1 and layers:
        env.append({"name": "VLLM_PP_LAYER_PARTITION", "value": layers})
    return surroundings.with_users(env, spec)
