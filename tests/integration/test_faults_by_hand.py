"""Somebody's hand in what the operator has made: it is put right, and nothing else is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.integration.arena import Arena, Json
from tests.integration.life import revisions, selected_revision, uids, workloads
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration

NODES, GPUS = 2, 3


@pytest.fixture
def served(arena: Arena) -> Iterator[Arena]:
    """A model of one pod, one of a group of two, and one that nobody touches."""
    nodes = arena.nodes(NODES, gpus=GPUS)
    arena.operator()
    arena.model("single")
    arena.model("group", parallelism={"pipeline": 2, "gpusPerPod": 1})
    arena.model("bystander", replicas=2)
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, GPUS)).watching():
        arena.wait_ready("single", "group", "bystander")
        bystanders = uids(arena, "bystander")
        yield arena
        assert uids(arena, "bystander") == bystanders


DELETED = {
    "the pod of a Deployment": ("single", "bowsprit.dev/role=head", "pod"),
    "the leader of a group": ("group", "bowsprit.dev/role=head", "pod"),
    "a worker of a group": ("group", "bowsprit.dev/role=worker", "pod"),
    "a Deployment": ("single", "", "deployment"),
    "a LeaderWorkerSet": ("group", "", "leaderworkerset"),
}


def test_pods_and_workloads_that_are_deleted_come_back_where_they_were(served: Arena) -> None:
    for model, role, kind in DELETED.values():
        before, nodes = uids(served, model), served.nodes_of(model)
        selector = ",".join(filter(None, [f"bowsprit.dev/model={model}", role]))
        served.kubectl("delete", kind, "-l", selector, "--wait=false")
        served.wait(f"new pods of {model}", lambda model=model, old=before: not uids(served, model) & old)  # type: ignore[misc]
        served.wait_ready(model)
        served.wait(f"{model} on its GPUs", lambda model=model, at=nodes: served.nodes_of(model) == at)  # type: ignore[misc]


def test_services_and_revisions_that_are_deleted_come_back_and_no_pod_is_touched(served: Arena) -> None:
    kept = uids(served, "single")
    revision = selected_revision(served, "single")
    served.kubectl("delete", "service", "single")
    served.kubectl("delete", "controllerrevision", "-l", "bowsprit.dev/model=single")
    served.wait("the revision", lambda: set(revisions(served, "single")) == {revision})
    served.wait("the service", lambda: bool(_get(served, "/api/v1", "services", "single")))
    assert selected_revision(served, "single") == revision
    assert uids(served, "single") == kept


def test_edits_are_taken_back(served: Arena) -> None:
    (name, deployment), *_ = workloads(served, "single").items()
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    container = deployment["spec"]["template"]["spec"]["containers"][0]["name"]
    served.kubectl("set", "image", f"deployment/{name}", f"{container}=somebody/else:latest")
    served.wait("the image", lambda: _images(served, name) == [image])
    served.wait_ready("single")
    served.wait("one pod", lambda: len(served.pods("single")) == 1)
    assert served.pods("single")[0]["spec"]["containers"][0]["image"] == image

    kept = uids(served, "single")
    served.kubectl("scale", f"deployment/{name}", "--replicas=2")
    served.wait("one replica", lambda: workloads(served, "single")[name]["spec"]["replicas"] == 1)
    patch = json.dumps({"spec": {"selector": {"bowsprit.dev/revision": "other"}}})
    before = selected_revision(served, "single")
    served.kubectl("patch", "service", "single", "-p", patch)
    served.wait("the selector", lambda: selected_revision(served, "single") == before)
    served.wait("the surplus pod to be gone", lambda: uids(served, "single") == kept)


def test_a_status_that_is_wiped_is_written_again_and_no_pod_is_touched(served: Arena) -> None:
    kept, before = uids(served, "group"), served.status("group")
    wiped = json.dumps({"status": None})
    served.kubectl("patch", "mdep", "group", "--subresource=status", "--type=merge", "-p", wiped)
    served.wait("the plan", lambda: served.status("group").get("plan") == before["plan"])
    served.wait_ready("group")
    assert uids(served, "group") == kept


def _get(arena: Arena, group: str, plural: str, name: str) -> list[Json]:
    items = arena.api.get(f"{group}/namespaces/{arena.namespace}/{plural}")["items"]
    return [item for item in items if item["metadata"]["name"] == name]


def _images(arena: Arena, name: str) -> list[str]:
    template = workloads(arena, "single")[name]["spec"]["template"]["spec"]
    return [container["image"] for container in template["containers"]]
