"""A changed spec becomes a new revision, beside the old one where it fits and else in its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.integration.arena import Arena
from tests.integration.life import (
    TWO_PODS,
    become_ready,
    engine,
    events,
    never_ready,
    revision_of,
    revisions,
    selected_revision,
    target,
    uids,
    workloads,
)
from tests.integration.referee import Referee
from tests.models import LLAMA_8B

pytestmark = pytest.mark.integration

ONE_POD: Mapping[str, Any] = {}
replicas_of = pytest.mark.parametrize(
    ("shape", "gpus"), [(ONE_POD, 1), (TWO_PODS, 2)], ids=["a Deployment", "a LeaderWorkerSet"]
)


def pods_of_revision(arena: Arena, model: str, revision: str) -> list[dict[str, Any]]:
    return [pod for pod in arena.pods(model) if revision_of(pod) == revision]


def wait_running(arena: Arena, model: str, revision: str, pods: int) -> None:
    def all_run() -> bool:
        found = pods_of_revision(arena, model, revision)
        return len(found) == pods and all(pod["status"].get("phase") == "Running" for pod in found)

    arena.wait(f"{pods} pods of revision {revision} to run", all_run)


@replicas_of
def test_the_old_revision_serves_until_the_new_one_beside_it_is_ready(
    stage: Arena, shape: Mapping[str, Any], gpus: int
) -> None:
    nodes = stage.nodes(1)
    stage.model("chat", **shape)
    stage.wait_ready("chat")
    old, before = target(stage, "chat"), uids(stage, "chat")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 4)).watching():
        stage.patch("chat", never_ready(engine=engine("--enable-prefix-caching")))
        new = target(stage, "chat")
        wait_running(stage, "chat", new, gpus)

        assert before <= uids(stage, "chat")
        assert selected_revision(stage, "chat") == old
        course = stage.status("chat")["revisions"]
        assert (course["serving"], course["target"]) == (old, new)
        assert stage.status("chat")["phase"] == "Updating"
        progressing = stage.condition("chat", "Progressing")
        assert (progressing["status"], progressing["reason"]) == ("True", "RollingOut")
        assert stage.condition("chat", "Ready")["status"] == "False"
        assert stage.condition("chat", "Available")["status"] == "True"

        become_ready(stage, *pods_of_revision(stage, "chat", new))
        stage.wait_ready("chat")
        stage.wait("the old pods to go", lambda: not before & uids(stage, "chat"))
    assert selected_revision(stage, "chat") == new
    assert stage.status("chat")["revisions"] == {"serving": new, "target": new}
    assert stage.condition("chat", "Progressing")["reason"] == "RolloutComplete"
    stage.wait("one workload to be left", lambda: len(workloads(stage, "chat")) == 1)
    assert set(revisions(stage, "chat")) == {old, new}


@replicas_of
def test_where_there_is_no_room_the_new_revision_takes_the_place_of_the_old(
    stage: Arena, shape: Mapping[str, Any], gpus: int
) -> None:
    nodes = stage.nodes(1, gpus=gpus)
    stage.model("chat", **shape)
    stage.wait_ready("chat")
    stage.model("rival")
    stage.wait_reason("rival", "GPUsReserved", "WaitingForGPUs")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, gpus)).watching():
        stage.patch("chat", {"engine": engine("--enable-prefix-caching")})
        new = target(stage, "chat")
        stage.wait_ready("chat")
    assert {revision_of(pod) for pod in stage.pods("chat")} == {new}
    assert selected_revision(stage, "chat") == new
    # The rival waited longer than the new pods; the GPUs were never its own.
    assert not stage.nodes_of("rival")
    assert "Reserved" not in {event["reason"] for event in events(stage, "rival")}


@replicas_of
def test_recreate_stops_the_old_revision_first_even_when_both_fit(
    stage: Arena, shape: Mapping[str, Any], gpus: int
) -> None:
    stage.nodes(1)
    stage.model("chat", rollout={"mode": "Recreate"}, **shape)
    stage.wait_ready("chat")
    before = uids(stage, "chat")
    stage.patch("chat", never_ready(engine=engine("--enable-prefix-caching")))
    new = target(stage, "chat")
    wait_running(stage, "chat", new, gpus)
    stage.wait("the old pods to go", lambda: not before & uids(stage, "chat"))
    become_ready(stage, *pods_of_revision(stage, "chat", new))
    stage.wait_ready("chat")


def test_surge_waits_for_gpus_beside_the_old_replicas_and_says_so(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("other")
    stage.wait_ready("other")
    stage.model("chat", rollout={"mode": "Surge"})
    stage.wait_ready("chat")
    old, before = target(stage, "chat"), uids(stage, "chat")
    stage.patch("chat", {"engine": engine("--enable-prefix-caching")})
    new = target(stage, "chat")
    ready = stage.wait_reason("chat", "Ready", "WaitingForGPUs")
    assert "Surge waits for GPUs beside the old replicas" in ready["message"]
    assert uids(stage, "chat") == before
    assert stage.status("chat")["revisions"] == {"serving": old, "target": new}
    stage.kubectl("delete", "mdep", "other", "--wait=false")
    stage.wait_ready("chat")
    assert {revision_of(pod) for pod in stage.pods("chat")} == {new}


@pytest.mark.parametrize("gpus", [4, 2], ids=["beside", "in place"])
def test_all_replicas_come_to_the_new_revision(stage: Arena, gpus: int) -> None:
    nodes = stage.nodes(1, gpus=gpus)
    stage.model("chat", replicas=2)
    stage.wait_ready("chat")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, gpus)).watching():
        stage.patch("chat", {"engine": engine("--enable-prefix-caching")})
        new = target(stage, "chat")
        stage.wait_ready("chat")
    assert [revision_of(pod) for pod in stage.pods("chat")] == [new, new]
    assert stage.status("chat")["readyReplicas"] == 2


@pytest.mark.parametrize("rollouts_before", [0, 1])
def test_of_several_quick_edits_the_newest_wins_and_nothing_is_left_of_the_others(
    stage: Arena, rollouts_before: int
) -> None:
    stage.nodes(1, gpus=3)
    stage.model("chat")
    stage.wait_ready("chat")
    for number in range(rollouts_before):
        stage.patch("chat", {"engine": engine(f"--seed={number}")})
        stage.wait_ready("chat")
    serving, before = target(stage, "chat"), uids(stage, "chat")
    stage.patch("chat", never_ready(engine=engine("--seed=100")))
    passing = target(stage, "chat")
    wait_running(stage, "chat", passing, 1)
    stage.patch("chat", never_ready(engine=engine("--seed=101")))
    stage.patch("chat", never_ready(engine=engine("--seed=102")))
    newest = target(stage, "chat")
    wait_running(stage, "chat", newest, 1)
    stage.wait("the revision in between to go", lambda: not pods_of_revision(stage, "chat", passing))
    assert before <= uids(stage, "chat")
    assert selected_revision(stage, "chat") == serving
    become_ready(stage, *pods_of_revision(stage, "chat", newest))
    stage.wait_ready("chat")
    stage.wait(
        "only the newest to be left",
        lambda: (
            [revision_of(pod) for pod in stage.pods("chat")] == [newest]
            and len(workloads(stage, "chat")) == 1
        ),
    )


def test_going_back_to_the_old_spec_brings_its_revision_back(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat")
    stage.wait_ready("chat")
    first, before = target(stage, "chat"), uids(stage, "chat")
    stage.patch("chat", never_ready(engine=engine("--seed=1")))
    second = target(stage, "chat")
    wait_running(stage, "chat", second, 1)

    # In the middle of a rollout: what serves goes on, the broken attempt goes.
    stage.patch("chat", {"engine": None, "template": None})
    stage.wait_ready("chat")
    assert target(stage, "chat") == first
    stage.wait("only the old pods to be there", lambda: uids(stage, "chat") == before)

    # After a whole one, too.
    stage.patch("chat", {"engine": engine("--seed=1")})
    third = target(stage, "chat")
    stage.wait_ready("chat")
    stage.patch("chat", {"engine": None})
    stage.wait_ready("chat")
    assert target(stage, "chat") == first
    assert set(revisions(stage, "chat")) == {first, second, third}
    assert selected_revision(stage, "chat") == first


def test_a_new_revision_that_no_node_can_serve_leaves_the_old_one_serving(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.model("chat")
    stage.wait_ready("chat")
    old, before = target(stage, "chat"), uids(stage, "chat")
    stage.patch("chat", {"accelerator": {"products": ["NVIDIA-H100-80GB-HBM3"]}})
    planned = stage.wait_reason("chat", "Planned", "NoMatchingNodes")
    assert "NVIDIA-H100-80GB-HBM3" in planned["message"]
    assert uids(stage, "chat") == before
    assert selected_revision(stage, "chat") == old
    assert stage.condition("chat", "Available")["status"] == "True"
    assert stage.status("chat")["url"].endswith(f"chat.{stage.namespace}.svc:8000")


def test_whatever_changes_the_pods_is_a_new_revision_and_the_history_is_bounded(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat", rollout={"revisionHistoryLimit": 1})
    stage.wait_ready("chat")
    seen = [target(stage, "chat")]
    for spec in (
        {"engine": engine("--seed=1")},
        {"engine": {"image": "vllm/vllm-openai:v0.33.0"}},
        {"architecture": {"hfOverrides": {"rope_theta": 1000000}}},
    ):
        stage.patch("chat", spec)
        stage.wait_ready("chat")
        seen.append(target(stage, "chat"))
    config = {"data": {"config.json": json.dumps({**LLAMA_8B, "num_hidden_layers": 30})}}
    stage.kubectl("patch", "configmap", "chat-config", "-p", json.dumps(config))
    stage.wait("a revision of the new config", lambda: target(stage, "chat") not in seen)
    stage.wait_ready("chat")
    stage.wait("it to serve", lambda: len(set(stage.status("chat")["revisions"].values())) == 1)
    seen.append(target(stage, "chat"))
    assert len(set(seen)) == 5
    stage.wait("the oldest to be pruned", lambda: set(revisions(stage, "chat")) == set(seen[-2:]))


def test_how_many_and_how_important_is_no_new_revision(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat")
    stage.wait_ready("chat")
    revision = target(stage, "chat")
    for spec in ({"replicas": 2}, {"priority": 7}, {"rollout": {"mode": "Recreate"}}, {"replicas": 1}):
        stage.patch("chat", spec)
        stage.wait_ready("chat")
        assert target(stage, "chat") == revision
    stage.wait("one pod to be left", lambda: len(uids(stage, "chat")) == 1)
    stage.patch("chat", {"suspend": True})
    stage.wait("all pods to go", lambda: not uids(stage, "chat"))
    stage.patch("chat", {"suspend": False})
    stage.wait_ready("chat")
    assert set(revisions(stage, "chat")) == {revision}
