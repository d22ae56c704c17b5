"""One workload per (revision, layout): a Deployment when a replica is one pod, a LeaderWorkerSet when it is
several.

The template of a workload never changes: another revision or layout is another workload, beside or after it,
and the controller decides which. So neither kind ever rolls by itself. Their strategies only matter when
somebody else touches the template (`kubectl rollout restart`), and then nothing may surge, because every GPU
is promised already: Recreate, or everything unavailable and no surge.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from bowsprit.api.names import ENGINE_CONTAINER
from bowsprit.plan.result import Layout
from bowsprit.render import labels, names
from bowsprit.render.canonical import canonical_json
from bowsprit.render.layouts import layout_data, layout_key, parse_layout
from bowsprit.render.owner import Owner, owned_metadata
from bowsprit.render.pod import head_template, worker_template
from bowsprit.render.revision import Revision

LEADER_WORKER_SET_API = "leaderworkerset.x-k8s.io/v1"

_NO_DEADLINE = 2**31 - 1
"""progressDeadlineSeconds that means none: pods may wait for GPUs as long as it takes."""

_KindAndSpec = tuple[dict[str, str], dict[str, Any]]


def workload(owner: Owner, revision: Revision, layout: Layout, replicas: int) -> dict[str, Any]:
    """The Deployment or LeaderWorkerSet that runs `replicas` replicas of a revision in one layout."""
    render = _deployment if layout.pods == 1 else _leader_worker_set
    kind, spec = render(owner, revision, layout, replicas)
    metadata = owned_metadata(
        owner,
        names.workload_name(owner.name, revision.hash, layout),
        labels.workload_labels(owner.name, revision.hash, layout),
    )
    metadata["annotations"] = {names.LAYOUT_ANNOTATION: canonical_json(layout_data(layout))}
    # A copy, so that callers may add to a manifest without changing the revision that it was made from.
    return deepcopy({**kind, "metadata": metadata, "spec": spec})


def _deployment(owner: Owner, revision: Revision, layout: Layout, replicas: int) -> _KindAndSpec:
    return {"apiVersion": "apps/v1", "kind": "Deployment"}, {
        "replicas": replicas,
        "selector": {"matchLabels": labels.workload_selector(owner.name, revision.hash, layout)},
        "strategy": {"type": "Recreate"},
        "progressDeadlineSeconds": _NO_DEADLINE,
        "revisionHistoryLimit": 0,
        "template": head_template(owner.name, revision, layout),
    }


def _leader_worker_set(owner: Owner, revision: Revision, layout: Layout, replicas: int) -> _KindAndSpec:
    """LeaderWorkerSet makes the group's headless Service itself, named like the set, with not-ready addresses
    published (lws v0.8.0 pkg/utils/controller): a second one of ours would only fight for the same name."""
    return {"apiVersion": LEADER_WORKER_SET_API, "kind": "LeaderWorkerSet"}, {
        "replicas": replicas,
        "startupPolicy": "LeaderCreated",
        "networkConfig": {"subdomainPolicy": "Shared"},
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": "100%", "maxSurge": 0},
        },
        "leaderWorkerTemplate": {
            "size": layout.pods,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": head_template(owner.name, revision, layout),
            "workerTemplate": worker_template(owner.name, revision, layout),
        },
    }


def layout_of(manifest: Mapping[str, Any]) -> Layout | None:
    """The layout that a workload was rendered for: from its annotation, else from its pods' environment.

    Either is believed only when it is the one that the pod template is labelled with, so an edited annotation
    does no harm. None when the object is not ours or both are damaged.
    """
    template = _head_template_of(manifest)
    written = [
        _at(manifest, "metadata", "annotations", names.LAYOUT_ANNOTATION),
        *(
            variable.get("value")
            for variable in _engine_env(template)
            if variable.get("name") == names.LAYOUT_ENV
        ),
    ]
    key = _at(template, "metadata", "labels", labels.LAYOUT)
    candidates = (parse_layout(text) for text in written if isinstance(text, str))
    return next((layout for layout in candidates if layout and layout_key(layout) == key), None)


def _head_template_of(manifest: Mapping[str, Any]) -> Any:
    if manifest.get("kind") == "LeaderWorkerSet":
        return _at(manifest, "spec", "leaderWorkerTemplate", "leaderTemplate")
    return _at(manifest, "spec", "template")


def _engine_env(template: Any) -> list[Mapping[str, Any]]:
    containers = _at(template, "spec", "containers")
    for container in containers if isinstance(containers, list) else []:
        if _at(container, "name") == ENGINE_CONTAINER:
            variables = container.get("env")
            return [entry for entry in variables or [] if isinstance(entry, Mapping)]
    return []


def _at(value: Any, *path: str) -> Any:
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
