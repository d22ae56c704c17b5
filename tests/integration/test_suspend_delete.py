"""Models stop and go, and their GPUs are somebody else's at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.integration.arena import Arena
from tests.integration.life import (
    REVISIONS,
    TWO_PODS,
    UNREADY,
    events,
    revision_of,
    revisions,
    target,
    uids,
    workloads,
)
from tests.integration.referee import Referee
from tests.integration.test_twelve_gpus import DBRX, LLAMA, MIXTRAL, apply_examples

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("shape", [{}, TWO_PODS], ids=["a Deployment", "a LeaderWorkerSet"])
def test_suspending_gives_all_gpus_to_the_one_that_waits_and_resuming_waits_in_turn(
    stage: Arena, shape: Mapping[str, Any]
) -> None:
    nodes = stage.nodes(1, gpus=2)
    stage.model("first", **(shape or {"replicas": 2}))
    stage.wait_ready("first")
    revision = target(stage, "first")
    stage.model("second", **TWO_PODS)
    stage.wait_reason("second", "GPUsReserved", "WaitingForGPUs")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 2)).watching():
        stage.patch("first", {"suspend": True})
        stage.wait_ready("second")
        ready = stage.wait_reason("first", "Ready", "Suspended")
        stage.wait(
            "the suspended model to have come to rest",
            lambda: stage.condition("first", "Reconciling")["status"] == "False",
        )
        ready = stage.condition("first", "Ready")
        assert ready["message"] == "Suspended. All GPUs are given back. Set spec.suspend to false to go on."
        status = stage.status("first")
        assert (status["phase"], status["replicas"], status.get("gpus", 0)) == ("Suspended", 0, 0)
        assert "url" not in status
        assert not workloads(stage, "first")

        stage.patch("first", {"suspend": False})
        stage.wait_reason("first", "GPUsReserved", "WaitingForGPUs")
        stage.patch("second", {"suspend": True})
        stage.wait_ready("first")
    assert set(revisions(stage, "first")) == {revision}


def test_three_big_models_take_turns_on_gpus_that_hold_one_of_them(stage: Arena) -> None:
    nodes = stage.nodes(2)
    names = apply_examples(stage)
    capacity = dict.fromkeys(nodes, 4)
    for name in names.values():
        stage.patch(name, {"suspend": True})
        stage.wait_reason(name, "Ready", "Suspended")
    stage.wait("no pods", lambda: not stage.pods())
    with Referee(stage.cluster, stage.namespace, capacity).watching():
        running = ""
        for file, gpus in ((MIXTRAL, 5), (DBRX, 4), (LLAMA, 3)):
            if running:
                stage.patch(running, {"suspend": True})
            stage.patch(names[file], {"suspend": None})
            stage.wait_ready(names[file])
            assert sum(stage.nodes_of(names[file]).values()) == gpus
            running = names[file]


def test_what_a_deleted_model_held_is_free_for_the_next(stage: Arena) -> None:
    nodes = stage.nodes(1, gpus=2)
    stage.model("first", **TWO_PODS)
    stage.wait_ready("first")
    stage.model("second", **TWO_PODS)
    stage.wait_reason("second", "GPUsReserved", "WaitingForGPUs")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 2)).watching():
        stage.kubectl("delete", "mdep", "first")
        stage.wait_ready("second")
    stage.wait("nothing to be left", lambda: not workloads(stage, "first") and not revisions(stage, "first"))


def test_a_model_can_be_deleted_while_its_pods_wait(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.model("starting", template={"metadata": {"labels": UNREADY}})
    stage.model("waiting")
    stage.wait("a pod", lambda: bool(stage.pods()))
    stage.kubectl("delete", "mdep", "starting", "waiting")
    stage.wait("all pods to go", lambda: not stage.pods())
    stage.wait("no workloads", lambda: not workloads(stage, "starting") and not workloads(stage, "waiting"))
    stage.model("next")
    stage.wait_ready("next")


def owners(arena: Arena, model: str) -> set[str]:
    """uids of those that own workloads and revisions of a model; "" for nobody."""
    children = [*workloads(arena, model).values(), *revisions(arena, model).values()]
    return {
        owner["uid"]
        for child in children
        for owner in child["metadata"].get("ownerReferences") or [{"uid": ""}]
    }


@pytest.mark.parametrize("shape", [{}, TWO_PODS], ids=["a Deployment", "a LeaderWorkerSet"])
def test_a_name_may_be_used_again_at_once(stage: Arena, shape: Mapping[str, Any]) -> None:
    nodes = stage.nodes(1, gpus=2)
    stage.model("chat", **shape)
    stage.wait_ready("chat")
    before = uids(stage, "chat")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 2)).watching():
        stage.kubectl("delete", "mdep", "chat")
        stage.model("chat", **shape)
        uid = stage.get("chat")["metadata"]["uid"]
        stage.wait_ready("chat")
        stage.wait("the first one's pods to go", lambda: not before & uids(stage, "chat"))
        stage.wait_ready("chat")
    stage.wait("everything to be its own", lambda: owners(stage, "chat") == {uid})


def test_orphaned_children_go_on_and_come_back_to_a_model_of_the_same_spec(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.model("chat")
    stage.wait_ready("chat")
    before = uids(stage, "chat")
    stage.kubectl("delete", "mdep", "chat", "--cascade=orphan")
    stage.model("rival")
    refused = stage.wait_reason("rival", "Planned", "InsufficientGPUs")
    assert f"{stage.namespace}/chat holds 1" in refused["message"]
    assert uids(stage, "chat") == before

    stage.model("chat")
    stage.wait_ready("chat")
    assert uids(stage, "chat") == before
    uid = stage.get("chat")["metadata"]["uid"]
    stage.wait("everything to be its own", lambda: owners(stage, "chat") == {uid})


def test_orphans_of_another_spec_stay_and_keep_their_gpus(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat")
    stage.wait_ready("chat")
    (old,) = stage.pods("chat")
    stage.kubectl("delete", "mdep", "chat", "--cascade=orphan")
    stage.model("chat", engine={"args": ["--seed=1"]})
    stage.wait_ready("chat")
    assert stage.condition("chat", "Reconciling")["status"] == "False"
    assert old["metadata"]["uid"] in uids(stage, "chat")
    assert stage.status("chat")["gpus"] == 1
    assert revision_of(old) != target(stage, "chat")


def test_a_namespace_with_models_can_be_deleted(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat", **TWO_PODS)
    stage.wait_ready("chat")
    stage.model("waiting")
    stage.wait_reason("waiting", "GPUsReserved", "WaitingForGPUs")
    namespace, path = stage.namespace, f"/api/v1/namespaces/{stage.namespace}"
    stage.cluster.kubectl("delete", "namespace", namespace, "--wait=false")
    stage.wait("the namespace to go", lambda: not stage.api.answers(path))
    stage.cluster.kubectl("create", "namespace", namespace)
    assert not stage.api.get(REVISIONS.format(namespace))["items"]
    assert not events(stage, "chat")
