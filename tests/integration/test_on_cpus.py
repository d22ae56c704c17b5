"""Models on CPUs: the scheduler places their pods by what they ask for, and no GPU is counted."""

from __future__ import annotations

from typing import Any

from e2e.cluster.nodes import cpu_node, create_nodes
from tests.integration.arena import Arena, Json


def nodes(arena: Arena, count: int) -> list[str]:
    """Fake nodes without GPUs: 128 cores each."""
    names = arena.new_names(count)
    made = [cpu_node(name, labels={"arena": arena.namespace}) for name in names]
    create_nodes(arena.cluster.kubeconfig, made)
    return names


def on_cpus(arena: Arena, cores: int = 2, **spec: Any) -> Json:
    return {
        "accelerator": {"resource": "cpu", "nodeSelector": {"arena": arena.namespace}},
        "engine": {"resources": {"requests": {"cpu": cores, "memory": "20Gi"}}},
        **spec,
    }


def bound(arena: Arena, model: str) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in arena.pods(model))


def test_a_model_is_served_and_scaled_on_nodes_without_gpus(stage: Arena) -> None:
    (node,) = nodes(stage, 1)
    stage.model("tiny", **on_cpus(stage))
    stage.wait_ready("tiny")
    assert bound(stage, "tiny") == [node]
    assert stage.status("tiny")["gpus"] == 0
    assert "needs no GPU" in stage.condition("tiny", "GPUsReserved")["message"]
    stage.patch("tiny", {"replicas": 3})
    stage.wait("three replicas", lambda: stage.status("tiny").get("readyReplicas") == 3)
    stage.patch("tiny", {"replicas": 1})
    stage.wait("one replica", lambda: len(stage.pods("tiny")) == 1)
    stage.wait_ready("tiny")


def test_stages_are_pods_that_the_scheduler_spreads(stage: Arena) -> None:
    names = nodes(stage, 2)
    stage.model("tiny", **on_cpus(stage, cores=100, parallelism={"pipeline": 2}))
    stage.wait_ready("tiny")
    assert bound(stage, "tiny") == sorted(names), "100 of 128 cores each: not two on one node"


def test_what_the_scheduler_says_is_told_and_it_goes_on_when_there_is_room(stage: Arena) -> None:
    nodes(stage, 1)
    stage.model("tiny", **on_cpus(stage, cores=100, replicas=2))
    stage.wait(
        "the scheduler's words",
        lambda: "Insufficient cpu" in stage.condition("tiny", "Ready").get("message", ""),
    )
    nodes(stage, 1)
    stage.wait_ready("tiny", seconds=120)


def test_a_changed_spec_takes_the_place_of_the_old_pods(stage: Arena) -> None:
    nodes(stage, 1)
    stage.model("tiny", **on_cpus(stage, cores=100))
    stage.wait_ready("tiny")
    stage.patch("tiny", {"capacity": {"maxModelLen": 4096}})
    stage.wait_ready("tiny")
    assert len(stage.pods("tiny")) == 1, "there is room for one at a time"
