"""The pod template of one role: what Bowsprit wants, and what the user's template may change merged into
it."""

from __future__ import annotations

from typing import Any

from bowsprit.plan.result import Layout
from bowsprit.render import budgets, engine, labels, names, plugins, wishes
from bowsprit.render.revision import Revision
from bowsprit.render.template import merge
from bowsprit.render.template_rules import review

# The stock vLLM image has this user, in group 0 for writable caches; it also runs as any other uid of group 0
# (vllm pull request 40275).
POD_SECURITY: dict[str, Any] = {
    "runAsNonRoot": True,
    "runAsUser": 2000,
    "runAsGroup": 0,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def head_template(name: str, revision: Revision, layout: Layout) -> dict[str, Any]:
    container = engine.engine_container(name, revision, layout, engine.head_args(layout))
    container |= engine.head_extras(revision.spec, revision.weight_bytes)
    return _template(name, revision, layout, labels.HEAD, container)


def worker_template(name: str, revision: Revision, layout: Layout) -> dict[str, Any]:
    container = engine.engine_container(name, revision, layout, engine.worker_args(layout))
    container |= engine.worker_extras()
    return _template(name, revision, layout, labels.WORKER, container)


def _template(
    name: str, revision: Revision, layout: Layout, role: str, container: dict[str, Any]
) -> dict[str, Any]:
    spec = revision.spec
    own_labels = {**labels.workload_labels(name, revision.hash, layout), labels.ROLE: role}
    pod: dict[str, Any] = {
        "schedulingGates": [{"name": names.PLACEMENT_GATE}],
        "containers": [container],
        "volumes": engine.volumes(spec),
        "securityContext": POD_SECURITY,
        "tolerations": wishes.tolerations_of(spec),
        "terminationGracePeriodSeconds": budgets.stopping(spec).grace_seconds,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
    }
    init_containers = plugins.plugin_init_containers(
        spec.plugins or (), container["image"], engine.CONTAINER_SECURITY
    )
    if init_containers:
        pod["initContainers"] = init_containers
    node_selector = wishes.node_selector_of(spec)
    if node_selector:
        pod["nodeSelector"] = node_selector
    accepted, _ = review(spec.template or {})
    return merge({"metadata": {"labels": own_labels}, "spec": pod}, accepted)
