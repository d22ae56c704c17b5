"""What tests of a model's life look at and act on, beside what the arena has already."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.integration.arena import Arena, Json, OperatorProcess

WORKLOADS = (
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
)
REVISIONS = "/apis/apps/v1/namespaces/{}/controllerrevisions"
UNREADY = {"arena.test/unready": "true"}
"""Pod label: the pod runs and is never Ready, as an engine that does not come up."""

UNREADY_STAGE = {
    "apiVersion": "kwok.x-k8s.io/v1alpha1",
    "kind": "Stage",
    "metadata": {"name": "arena-unready"},
    "spec": {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {
            "matchLabels": UNREADY,
            "matchExpressions": [
                {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
            ],
        },
        "weight": 1,
        "next": {"statusTemplate": "phase: Running\n"},
    },
}

TWO_PODS = {"parallelism": {"pipeline": 2, "gpusPerPod": 1}}
"""One replica of two pods with a GPU each: a LeaderWorkerSet."""


def engine(*arguments: str, **more: Any) -> Json:
    """spec.engine with some arguments: a change of them is a new revision."""
    return {"args": list(arguments), **more}


def never_ready(**spec: Any) -> Json:
    """A spec whose pods run and do not become Ready."""
    return {"template": {"metadata": {"labels": UNREADY}}, **spec}


def workloads(arena: Arena, model: str) -> dict[str, Json]:
    """Deployments and LeaderWorkerSets of a model by name; those on their way out too."""
    found = [item for path in WORKLOADS for item in arena.api.get(path.format(arena.namespace))["items"]]
    return {item["metadata"]["name"]: item for item in found if _belongs(item, model)}


def revisions(arena: Arena, model: str) -> dict[str, Json]:
    """ControllerRevisions of a model, by the hash in their label."""
    items = arena.api.get(REVISIONS.format(arena.namespace))["items"]
    found = [item for item in items if _belongs(item, model) and not _is_of_a_stateful_set(item)]
    return {item["metadata"]["labels"]["bowsprit.dev/revision"]: item for item in found}


def selected_revision(arena: Arena, model: str) -> str:
    """The revision that the model's Service sends requests to."""
    service = arena.api.get(f"/api/v1/namespaces/{arena.namespace}/services/{model}")
    return str(service["spec"]["selector"]["bowsprit.dev/revision"])


def revision_of(pod: Json) -> str:
    return str(pod["metadata"]["labels"]["bowsprit.dev/revision"])


def uids(arena: Arena, model: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in arena.pods(model)}


def target(arena: Arena, model: str) -> str:
    """The revision that the spec asks for, once the status knows the present spec."""
    arena.wait(f"the status of {model} to know its spec", lambda: _is_observed(arena.get(model)))
    return str(arena.status(model)["revisions"]["target"])


def become_ready(arena: Arena, *pods: Json) -> None:
    """Makes pods Ready that never_ready() holds back."""
    for pod in pods:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        patch = json.dumps({"status": {"conditions": [condition]}})
        arena.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "-p", patch)


def events(arena: Arena, model: str) -> list[Json]:
    """Events about a model, oldest first."""
    items = arena.api.get(f"/api/v1/namespaces/{arena.namespace}/events")["items"]
    about = [item for item in items if item["involvedObject"].get("kind") == "ModelDeployment"]
    mine = [item for item in about if item["involvedObject"]["name"] == model]
    return sorted(mine, key=lambda item: int(item["metadata"]["resourceVersion"]))


def fetch(operator: OperatorProcess, path: str) -> tuple[int, str]:
    """Status and text of one of the operator's own endpoints."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{operator.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metric(operator: OperatorProcess, name: str, **labels: str) -> float:
    """The value of one sample; 0 when there is none."""
    _, text = fetch(operator, "/metrics")
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(
        sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()
    )


def _is_of_a_stateful_set(item: Json) -> bool:
    """StatefulSets keep revisions of their own, with the labels of their pods."""
    return any(owner["kind"] == "StatefulSet" for owner in item["metadata"].get("ownerReferences") or ())


def _belongs(item: Json, model: str) -> bool:
    return (item["metadata"].get("labels") or {}).get("bowsprit.dev/model") == model


def _is_observed(model: Json) -> bool:
    status = model.get("status") or {}
    return bool(status.get("observedGeneration") == model["metadata"]["generation"])
