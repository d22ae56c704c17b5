"""CPU, memory and the rest of a node: nothing is pinned where they lack, and what is lacking is said."""

from __future__ import annotations

import pytest

from tests.integration.arena import Arena
from tests.integration.faults import foreign_pod, remove_foreign

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
