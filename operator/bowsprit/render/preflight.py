"""The preflight Job: everything that serving pods do before a GPU is needed, once, and a report of it.

It runs the same engine image with the same plugins, variables, volumes and arguments as the serving pods, so
that what was proven is what serves; only what would bind it to a GPU or to serving is left out.

The Job's own machinery does the retrying. A verdict (exit code 1) and a container that was killed end it at
once, for another try would end alike; anything else, such as a network that fails (75), is tried again with
growing pauses. What came of it is read from the pod (status/attempt.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bowsprit.api import defaults
from bowsprit.api.names import ENGINE_CONTAINER
from bowsprit.api.pod_requests import amount
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.plan.fleet import Taint
from bowsprit.plan.ground import tolerated
from bowsprit.render import engine, labels, names, resources, runtime, surroundings, wishes
from bowsprit.render.canonical import canonical_json, short_hash
from bowsprit.render.owner import Owner, owned_metadata
from bowsprit.render.pod import AWAY_FROM_GPUS, POD_SECURITY
from bowsprit.render.revision import revision_of, words
from bowsprit.render.template import merge

CONTRACT = 1
"""Of decision 0012; a report of another one is asked for anew."""
TENSOR_SIZES = (1, 2, 4, 8)
UNEVEN_TENSOR_SIZES = (1, 2, 3, 4, 5, 6, 7, 8)
"""Of an architecture that pads its dimensions."""
_DEADLINE_SECONDS = 3600
"""Of one pod, pulling of images included: far above the time limit, which the runtime sees to itself."""
_BACKOFF_LIMIT = 6
"""Tries after the first, with the Job controller's pauses of 10, 20, … 320 s in between."""
_FINAL_EXIT_CODES = [1, 137]
"""A verdict; and a container that was killed, for its memory or at the deadline."""

_KEY_LENGTH = 10
_JUDGED = {
    "model": ("uri", "revision", "tokenSecretRef"),
    "engine": ("image", "args", "env"),
    "accelerator": ("resource",),
    "capacity": ("maxModelLen", "gpuMemoryUtilization", "kvCacheDtype", "cpuOffload"),
    "parallelism": ("tensor", "pipeline", "layerPartition", "expert"),
}
"""Fields of the spec that decide the report; architecture, plugins and template do as a whole."""

_GPU_TAINTS = ("nvidia.com/gpu", "amd.com/gpu")
_MACHINE_LABELS = ("kubernetes.io/arch", "kubernetes.io/os")

_POD_FIELDS = ("volumes", "imagePullSecrets", "serviceAccountName", "securityContext", "tolerations")
_NETWORK_FIELDS = ("dnsPolicy", "dnsConfig", "hostAliases")
_CONTAINER_FIELDS = ("name", "volumeMounts", "envFrom", "securityContext")
"""Of the user's template, what a process that loads vLLM needs. Sidecars would keep the Job from ending;
priority, GPU runtime and node selector are for serving."""


def preflight_key(spec: ModelDeploymentSpec, namespace: str) -> str:
    """Hash of all that decides the report: the same key needs no second preflight.

    It is of the user's words and not of the Job, so an operator with other defaults or another runtime image
    asks for nothing anew.
    """
    data = words(spec)
    judged: dict[str, Any] = {
        section: {field: data[section][field] for field in fields if field in data.get(section, {})}
        for section, fields in _JUDGED.items()
    }
    whole = {section: data.get(section) for section in ("architecture", "plugins", "template")}
    if limit := amount("memory", _memory_limit(spec)):
        # Some verdicts are cured by more.
        judged["memoryLimit"] = limit
    if machine := _machine(spec):
        judged["machine"] = machine
    # Claims and Secrets of one name are other things in another namespace.
    return short_hash({**judged, **whole, "namespace": namespace, "contract": CONTRACT}, _KEY_LENGTH)


def preflight_name(owner_name: str, key: str) -> str:
    """Of the Job, and of the ConfigMap that keeps its report."""
    return f"{owner_name}-preflight-{key}"


def preflight_job(
    owner: Owner,
    key: str,
    spec: ModelDeploymentSpec,
    runtime_image: str,
    time_limit_s: int = defaults.PREFLIGHT_SECONDS,
) -> dict[str, Any]:
    """The batch/v1 Job. `key` is of the spec as the user wrote it; `spec` may have defaults of an earlier
    day."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": owned_metadata(owner, preflight_name(owner.name, key), _labels(owner, key)),
        "spec": {
            "backoffLimit": _BACKOFF_LIMIT,
            "podFailurePolicy": {
                "rules": [
                    # Evictions and drained nodes say nothing of the model.
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {"action": "FailJob", "onExitCodes": {"operator": "In", "values": _FINAL_EXIT_CODES}},
                ]
            },
            "template": _template(owner, spec, key, runtime_image, time_limit_s),
        },
    }


def preflight_config_map(owner: Owner, key: str, report: str, images: Mapping[str, str]) -> dict[str, Any]:
    """The ConfigMap that keeps a report, as it was told, and the images that were run, as the kubelet named
    them, by container."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned_metadata(owner, preflight_name(owner.name, key), _labels(owner, key)),
        "immutable": True,
        "data": {names.REPORT_KEY: report, names.IMAGES_KEY: canonical_json(images)},
    }


def _labels(owner: Owner, key: str) -> dict[str, str]:
    return {**labels.model_labels(owner.name), labels.COMPONENT: "preflight", labels.PREFLIGHT: key}


def _template(
    owner: Owner, spec: ModelDeploymentSpec, key: str, runtime_image: str, time_limit_s: int
) -> dict[str, Any]:
    """Its pods do not carry the model's label: that one is for what serves."""
    revision = revision_of(spec, None, owner.name, {runtime.RUNTIME_CONTAINER: runtime_image})
    full = revision.spec
    containers = surroundings.init_containers(revision, surroundings.SMALL_FILES)
    proving = _container(owner.name, full, surroundings.engine_image(revision), time_limit_s)
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": _DEADLINE_SECONDS,
        "initContainers": [_tells_its_log(each) for each in containers],
        "containers": [_tells_its_log(proving)],
        "volumes": surroundings.volumes(full),
        "securityContext": POD_SECURITY,
        "tolerations": _tolerations(full),
        "affinity": {"nodeAffinity": AWAY_FROM_GPUS},
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
    }
    if machine := _machine(full):
        pod["nodeSelector"] = machine
    merged = merge({"metadata": {}, "spec": pod}, _of_template(full.template or {}))
    marks = {**_labels(owner, key), labels.PREFLIGHT_OF: owner.name}
    del marks[labels.MODEL]
    return merge(merged, {"metadata": {"labels": marks}})


def _machine(spec: ModelDeploymentSpec) -> dict[str, str]:
    """What the node selector says of the machine: wheels and images are for one kind."""
    selector = wishes.node_selector_of(spec)
    return {label: selector[label] for label in _MACHINE_LABELS if label in selector}


def _container(name: str, spec: ModelDeploymentSpec, image: str, time_limit_s: int) -> dict[str, Any]:
    env = [
        *surroundings.common_env(spec),
        # The NVIDIA runtime hands all GPUs of a node to whoever does not say this.
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
    ]
    wanted = {**_request(name, spec), "timeLimitSeconds": time_limit_s}
    request = {"name": names.PREFLIGHT_ENV, "value": canonical_json(wanted)}
    return {
        "name": ENGINE_CONTAINER,
        "image": image,
        "command": runtime.command("preflight"),
        # Last, for Kubernetes expands only names that stand before.
        "env": [*surroundings.with_users(env, spec), request],
        "resources": _resources(spec),
        "volumeMounts": surroundings.mounts(spec),
        "securityContext": runtime.CONTAINER_SECURITY,
    }


def _request(name: str, spec: ModelDeploymentSpec) -> dict[str, Any]:
    """BOWSPRIT_PREFLIGHT."""
    explicit = wishes.explicit_of(spec)
    uneven = bool(spec.architecture and spec.architecture.uneven_tensor_parallel)
    sizes: tuple[int, ...] = UNEVEN_TENSOR_SIZES if uneven else TENSOR_SIZES
    if explicit.tensor or wishes.resource_of(spec) == "cpu":
        sizes = (explicit.tensor or 1,)
    return {
        "arguments": [*engine.arguments(name, spec, []), *wishes.args_of(spec)],
        "tensors": list(sizes),
        "pipeline": explicit.stages,
        "unevenTensorParallel": uneven,
    }


def _resources(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """A limit of the user's for the engine's memory is a limit here too: it is where more can be given."""
    given, ours = _memory_limit(spec), resources.PREFLIGHT
    limit = amount("memory", given)
    if not limit:
        return ours
    asked = ours["requests"]["memory"]
    enough = limit >= (amount("memory", asked) or 0)
    return {
        "requests": {**ours["requests"], "memory": asked if enough else given},
        "limits": {**ours["limits"], "memory": given},
    }


def _memory_limit(spec: ModelDeploymentSpec) -> Any:
    """A quantity, as the user wrote it for the engine."""
    return ((spec.engine.resources if spec.engine else None) or {}).get("limits", {}).get("memory")


def _tells_its_log(container: Mapping[str, Any]) -> dict[str, Any]:
    """A container that fails without a report is told of by its last lines."""
    return {**container, "terminationMessagePolicy": "FallbackToLogsOnError"}


def untolerated(spec: ModelDeploymentSpec, taints: Iterable[Taint]) -> list[Taint]:
    """Those that keep the preflight pod away."""
    tolerations = wishes.lasting(_tolerations(spec))
    return [taint for taint in taints if not tolerated(taint, tolerations)]


def _tolerations(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """Where all nodes are GPU nodes it runs there, without taking a GPU."""
    given = wishes.tolerations_of(spec)
    gpus = [{"key": key, "operator": "Exists"} for key in _GPU_TAINTS]
    return [*given, *(each for each in gpus if each not in given)]


def _of_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the user's template that applies."""
    pod = template.get("spec") or {}
    kept: dict[str, Any] = {name: pod[name] for name in (*_POD_FIELDS, *_NETWORK_FIELDS) if name in pod}
    containers = [
        {name: container[name] for name in _CONTAINER_FIELDS if name in container}
        for container in pod.get("containers", ())
        if container["name"] == ENGINE_CONTAINER
    ]
    if containers:
        kept["containers"] = containers
    init = [each for each in pod.get("initContainers", ()) if each.get("restartPolicy") != "Always"]
    if init:
        kept["initContainers"] = init
    return {**({"metadata": template["metadata"]} if "metadata" in template else {}), "spec": kept}
