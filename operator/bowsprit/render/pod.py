"""The pod template of one role, in three layers: what Bowsprit wants, the user's template on it, and on top
what has to hold whatever the template says: the labels that Services and Bowsprit select by, the gate, and
the number of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bowsprit.api.names import ENGINE_CONTAINER
from bowsprit.plan.result import Layout
from bowsprit.render import budgets, engine, labels, names, surroundings, wishes
from bowsprit.render.revision import Revision
from bowsprit.render.template import merge

# The stock vLLM image has this user, in group 0 for writable caches; it also runs as any other uid of group 0
# (vllm pull request 40275).
POD_SECURITY: dict[str, Any] = {
    "runAsNonRoot": True,
    "runAsUser": 2000,
    "runAsGroup": 0,
    "seccompProfile": {"type": "RuntimeDefault"},
}
GPU_LABELS = (
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "amd.com/gpu.family",
)
"""Of nodes with GPUs, by the vendors' labellers."""
AWAY_FROM_GPUS: dict[str, Any] = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {
            "weight": 100,
            "preference": {
                "matchExpressions": [{"key": label, "operator": "DoesNotExist"} for label in GPU_LABELS]
            },
        }
    ]
}
"""For pods without GPUs: nodes without them come first."""
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def head_template(name: str, revision: Revision, layout: Layout) -> dict[str, Any]:
    """Of the pod that answers requests: the only one, or rank 0 of a group. `name` is the model's."""
    container = engine.engine_container(name, revision, layout, engine.head_args(layout))
    container |= engine.head_extras(name, revision.spec, revision.weight_bytes)
    container["env"] += engine.verify_env(name, revision.spec)
    pod = merge({"metadata": {}, "spec": _pod(revision, container)}, revision.spec.template or {})
    return merge(pod, _must_hold(name, revision, layout, labels.HEAD))


def worker_template(name: str, revision: Revision, layout: Layout) -> dict[str, Any]:
    """Of the other pods of a group."""
    container = engine.engine_container(name, revision, layout, engine.worker_args(revision.spec, layout))
    container |= engine.worker_extras()
    pod = merge(
        {"metadata": {}, "spec": _pod(revision, container)},
        _without_http_probes(revision.spec.template or {}),
    )
    return merge(pod, _must_hold(name, revision, layout, labels.WORKER))


def _must_hold(name: str, revision: Revision, layout: Layout, role: str) -> dict[str, Any]:
    marks = {**labels.workload_labels(name, revision.hash, layout), labels.ROLE: role}
    return {"metadata": {"labels": marks}, "spec": _placing(revision, layout)}


def _placing(revision: Revision, layout: Layout) -> dict[str, Any]:
    """GPUs, and the gate behind which pods wait for their nodes; on CPUs the scheduler needs neither."""
    if layout.on_cpus:
        return {"affinity": {"nodeAffinity": AWAY_FROM_GPUS}}
    gpus = {wishes.resource_of(revision.spec): str(layout.gpus_per_pod)}
    return {
        "schedulingGates": [{"name": names.PLACEMENT_GATE}],
        "containers": [{"name": ENGINE_CONTAINER, "resources": {"limits": gpus}}],
    }


def _pod(revision: Revision, container: Mapping[str, Any]) -> dict[str, Any]:
    spec = revision.spec
    pod: dict[str, Any] = {
        "initContainers": surroundings.init_containers(revision, surroundings.WHOLE_MODEL),
        "containers": [container],
        "volumes": surroundings.volumes(spec),
        "securityContext": POD_SECURITY,
        "tolerations": wishes.tolerations_of(spec),
        "terminationGracePeriodSeconds": budgets.stopping(spec).grace_seconds,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
    }
    node_selector = wishes.node_selector_of(spec)
    if node_selector:
        pod["nodeSelector"] = node_selector
    return pod


def _without_http_probes(template: Mapping[str, Any]) -> Mapping[str, Any]:
    """A worker serves no HTTP: of the user's probes of the engine only those that run a command apply to
    it."""
    pod = template.get("spec") or {}
    containers = [
        {
            key: value
            for key, value in container.items()
            if container["name"] != ENGINE_CONTAINER or key not in _PROBES or "exec" in (value or {})
        }
        for container in pod.get("containers", ())
    ]
    return {**template, "spec": {**pod, "containers": containers}} if containers else template
