"""Not enough GPUs, or none that may be used: who waits, with which words, and who goes first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.arena import PCIE, Arena
from tests.integration.life import TWO_PODS, uids
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration


def test_a_model_waits_with_numbers_and_starts_by_itself(stage: Arena) -> None:
    (node,) = stage.nodes(1, gpus=3)
    stage.model("holder", **TWO_PODS)
    stage.wait_ready("holder")
    stage.model("chat", **TWO_PODS)
    ready = stage.wait_reason("chat", "Ready", "WaitingForGPUs")
    assert ready["message"] == (
        "One more replica takes tp=1, pp=2: 2 GPUs of A100-80GB-PCIe; 1 free, 1 short. "
        f"The others: {stage.namespace}/holder holds 2. Place 1 in the queue; it starts by itself."
    )
    assert stage.status("chat")["waiting"] == {
        "gpusShort": 1,
        "position": 1,
        "product": PCIE,
        "reason": "InsufficientGPUs",
    }
    assert stage.status("chat")["phase"] == "Waiting"
    assert not stage.pods("chat")
    with Referee(stage.cluster, stage.namespace, {node: 3}).watching():
        stage.kubectl("delete", "mdep", "holder")
        stage.wait_ready("chat")
    assert "waiting" not in stage.status("chat")


def test_pieces_on_several_nodes_are_no_room_for_a_pod_of_two(stage: Arena) -> None:
    for pool in ("a", "b"):
        stage.nodes(1, gpus=2, labels={"pool": pool})
        stage.model(pool, accelerator={"nodeSelector": {"arena": stage.namespace, "pool": pool}})
    stage.wait_ready("a", "b")
    stage.model("chat", parallelism={"pipeline": 2, "gpusPerPod": 2})
    planned = stage.wait_reason("chat", "Planned", "GPUsFragmented")
    assert "2 are free" in planned["message"]
    assert "the largest free piece is 1" in planned["message"]
    stage.nodes(1, gpus=2)
    stage.wait_ready("chat")


def test_priority_decides_who_goes_first_and_positions_follow(stage: Arena) -> None:
    nodes = stage.nodes(1, gpus=2)
    stage.model("holder", **TWO_PODS)
    stage.wait_ready("holder")
    for name, priority in (("low", 0), ("high", 10), ("middle", 5)):
        stage.model(name, priority=priority, **TWO_PODS)

    def positions() -> dict[str, int | None]:
        return {
            name: stage.status(name).get("waiting", {}).get("position") for name in ("high", "middle", "low")
        }

    stage.wait("the queue", lambda: positions() == {"high": 1, "middle": 2, "low": 3})
    # Whoever runs stays: priorities order those that wait.
    stage.patch("holder", {"priority": -5})
    before = uids(stage, "holder")
    stage.patch("low", {"priority": 7})
    stage.wait("the new order", lambda: positions() == {"high": 1, "low": 2, "middle": 3})
    assert uids(stage, "holder") == before
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 2)).watching():
        for leaves, follows in (("holder", "high"), ("high", "low"), ("low", "middle")):
            stage.kubectl("delete", "mdep", leaves)
            stage.wait_ready(follows)


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "more stages than layers": (
        {"parallelism": {"pipeline": 64}},
        "LayoutRefused",
        ("parallelism.pipeline", "32", "The nearest that works"),
    ),
    "a size that does not divide": (
        {"parallelism": {"tensor": 3}},
        "LayoutRefused",
        ("parallelism.tensor", "32 attention heads", "The nearest that works"),
    ),
    "a split that does not add up": (
        {"parallelism": {"pipeline": 2, "layerPartition": [16, 15]}},
        "LayoutRefused",
        ("parallelism.layerPartition", "31", "32"),
    ),
    "a context that the model has not": (
        {"capacity": {"maxModelLen": 1_000_000}},
        "InvalidSpec",
        ("spec.capacity.maxModelLen: 1,000,000 tokens", "131072"),
    ),
    "a cache that no number of stages holds": (
        {"capacity": {"maxModelLen": 8192, "concurrency": 100_000}},
        "ModelDoesNotFit",
        ("less concurrency",),
    ),
}


@pytest.mark.parametrize(("spec", "reason", "words"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_refused_with_field_and_cure(
    stage: Arena, spec: dict[str, Any], reason: str, words: tuple[str, ...]
) -> None:
    stage.nodes(1)
    stage.model("impossible", **spec)
    stage.model("other")
    stage.wait_ready("other")
    stalled = stage.wait_reason("impossible", "Stalled", reason)
    assert stalled["status"] == "True"
    for word in words:
        assert word in stalled["message"], stalled["message"]
    assert stage.status("impossible")["phase"] == "Failed"
    assert "waiting" not in stage.status("impossible")
    stage.patch("impossible", {"parallelism": None, "capacity": {"maxModelLen": 8192, "concurrency": None}})
    stage.wait_ready("impossible")


def test_a_model_for_which_no_node_matches_says_what_the_nodes_are(stage: Arena) -> None:
    taint = {"key": "dedicated", "value": "training", "effect": "NoSchedule"}
    stage.nodes(1)
    stage.nodes(1, labels={"pool": "tainted"}, taints=[taint])
    own = {"arena": stage.namespace}
    stage.model("product", accelerator={"nodeSelector": own, "products": ["NVIDIA-L4"]})
    stage.model("label", accelerator={"nodeSelector": {**own, "zone": "moon"}})
    stage.model("taint", accelerator={"nodeSelector": {**own, "pool": "tainted"}})
    expected = {
        "product": f"{PCIE} is not among products NVIDIA-L4",
        "label": "label zone is absent, nodeSelector asks for moon",
        "taint": "taint dedicated=training:NoSchedule is not tolerated",
    }
    for name, words in expected.items():
        planned = stage.wait_reason(name, "Planned", "NoMatchingNodes")
        assert words in planned["message"]
        # A node may come: nothing is Stalled.
        assert stage.condition(name, "Stalled")["status"] == "False"
        assert stage.status(name)["phase"] == "Waiting"
    stage.patch("taint", {"accelerator": {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}})
    stage.wait_ready("taint")
    stage.nodes(1, labels={"zone": "moon"})
    stage.wait_ready("label")
