"""CPU, memory and the rest of a node: nothing is pinned where they lack, and what is lacking is said."""

from __future__ import annotations

import pytest

from tests.integration.arena import Arena, Json
from tests.integration.faults import foreign_pod, remove_foreign
from tests.integration.referee import GPU

pytestmark = pytest.mark.integration

HUNGRY = {"resources": {"requests": {"cpu": "100", "memory": "64Gi"}}}


def test_a_model_waits_for_cpu_with_numbers_and_starts_when_it_comes_free(stage: Arena) -> None:
    (node,) = stage.nodes(1, gpus=4)
    foreign_pod(stage, "busy", node, gpus=0, cpu="100")
    stage.model("chat", engine=HUNGRY)
    planned = stage.wait_reason("chat", "Planned", "InsufficientNodeResources")
    assert "which asks for 100 CPUs, 64 GiB of memory" in planned["message"]
    assert f"node {node} (4 GPUs free) has 28 of 128 CPUs free" in planned["message"]
    assert stage.status("chat")["phase"] == "Waiting"
    assert not stage.pods("chat")
    remove_foreign(stage, "busy")
    stage.wait_ready("chat")


def test_a_full_node_is_passed_over(stage: Arena) -> None:
    full, roomy = stage.nodes(2, gpus=4)
    foreign_pod(stage, "busy", full, gpus=0, cpu="100")
    stage.model("chat", engine=HUNGRY)
    stage.wait_ready("chat")
    assert stage.nodes_of("chat").keys() == {roomy}


def test_a_new_revision_takes_the_place_of_the_old_one_where_only_its_cpu_is(stage: Arena) -> None:
    (node,) = stage.nodes(1, gpus=4)
    stage.model("chat", engine=HUNGRY)
    stage.wait_ready("chat")
    (before,) = stage.pods("chat")
    stage.patch("chat", {"engine": {"args": ["--seed=1"]}})
    stage.wait(
        "the new pod alone",
        lambda: [pod["metadata"]["uid"] != before["metadata"]["uid"] for pod in stage.pods("chat")] == [True],
    )
    stage.wait_ready("chat")
    assert stage.nodes_of("chat").keys() == {node}


def test_a_limit_range_gives_pods_gpus_and_the_model_waits_for_these_or_says_why(stage: Arena) -> None:
    """With a maximum and no default, every container that asks for no GPU gets as many as the maximum."""
    (node,) = stage.nodes(1, gpus=4)
    foreign_pod(stage, "busy", node, gpus=1)
    stage.apply(limit_range(max={GPU: "4"}))
    stage.model("chat")
    planned = stage.wait_reason("chat", "Planned", "InsufficientNodeResources")
    assert f"node {node} (3 GPUs free) has 3 of 4 {GPU} free" in planned["message"]
    assert f"asked for 4 {GPU} instead of 1 {GPU}: a webhook, a RuntimeClass or a" in planned["message"]
    assert stage.status("chat")["phase"] == "Waiting"
    stage.wait("the pod to be gone", lambda: not stage.pods("chat"))
    remove_foreign(stage, "busy")
    stage.wait_ready("chat")
    assert stage.nodes_of("chat").keys() == {node}


def test_a_limit_range_that_gives_no_gpus_by_default_changes_nothing(stage: Arena) -> None:
    (node,) = stage.nodes(1, gpus=1)
    stage.apply(limit_range(max={GPU: "4"}, default={GPU: "0"}))
    stage.model("chat")
    stage.wait_ready("chat")
    assert stage.nodes_of("chat").keys() == {node}


def limit_range(**limits: dict[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "gpus"},
        "spec": {"limits": [{"type": "Container", **limits}]},
    }
