"""What the operator does not do: work for changes that change nothing, and for models that have not changed.

Counted in passes, frames and writes, never in seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bowsprit.cluster.resources import DEPLOYMENTS, MODEL_DEPLOYMENTS
from bowsprit.controller import reconcile
from bowsprit.controller.book import FLEET
from tests.unit.controller.world import World

MODELS = ("a", "b", "c")


@pytest.fixture
async def world() -> World:
    """Three models that serve on two nodes."""
    made = World()
    for name in ("n1", "n2"):
        made.node(name)
    await made.serve(*MODELS)
    for name in MODELS:
        status = made.server.objects[MODEL_DEPLOYMENTS]["team", name]["status"]
        assert status["phase"] == "Ready", status
    return made


@pytest.fixture
def framed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a frame was made of each model."""
    counts: Counter[str] = Counter()
    frame_of = reconcile.frame_of

    def counted(declared: Any, *arguments: Any, **more: Any) -> Any:
        counts[declared.key.name] += 1
        return frame_of(declared, *arguments, **more)

    monkeypatch.setattr(reconcile, "frame_of", counted)
    return counts


async def test_a_model_is_served_with_few_writes(world: World) -> None:
    """Children once, a pin, and of the status: promise, reserved, ready, with an Event for each."""
    assert world.server.writes == {
        "apply ControllerRevision": 3,
        "apply Deployment": 3,
        "apply Service": 3,
        "pin": 3,
        "patch modeldeployments/status": 9,
        "create events": 9,
    }


def _heartbeat(world: World) -> None:
    world.node("n1", heartbeat="2026-11-30T12:05:00Z")


def _workload_status(world: World) -> None:
    for workload in list(world.server.objects[DEPLOYMENTS].values()):
        stored = world.server.put(DEPLOYMENTS, {**workload, "status": {"readyReplicas": 1}})
        world.book.children[DEPLOYMENTS].upsert(stored)


def _pod_condition(world: World) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "PodHasNetwork", "status": "True"}]
    world.pod("a", phase="Running", conditions=conditions)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(_heartbeat, id="a node's heartbeat"),
        pytest.param(_workload_status, id="the status of a workload"),
        pytest.param(_pod_condition, id="a pod's condition that nobody reads"),
        pytest.param(World.relist, id="a resync of everything"),
    ],
)
def test_no_pass_is_made_for(event: Callable[[World], None], world: World) -> None:
    event(world)
    assert len(world.queue) == 0


async def test_one_changed_pod_is_one_pass_over_its_model_only(world: World, framed: Counter[str]) -> None:
    passes = world.passes
    world.server.writes.clear()
    world.pod("b", phase="Running", conditions=[{"type": "Ready", "status": "False"}])
    await world.settle()
    assert world.passes == passes + 1
    assert framed == {"b": 1}
    assert world.server.writes == {"patch modeldeployments/status": 1, "create events": 1}


async def test_a_node_more_is_one_pass_over_no_model_and_no_write(world: World, framed: Counter[str]) -> None:
    passes = world.passes
    world.server.writes.clear()
    world.node("n3")
    await world.settle()
    assert world.passes == passes + 1
    assert (framed, world.server.writes) == ({}, {})


async def test_models_that_wait_for_their_pods_are_not_looked_at_for_others(framed: Counter[str]) -> None:
    world = World()
    world.node("n1")
    world.model("waits-for-its-pod")
    await world.settle()
    framed.clear()
    await world.serve("a", "b")
    assert "waits-for-its-pod" not in framed


async def test_looking_again_at_everything_writes_nothing(world: World, framed: Counter[str]) -> None:
    world.server.writes.clear()
    for declared in world.book.models:
        world.queue.add(declared.key)
    world.queue.add(FLEET)
    await world.settle()
    assert framed == dict.fromkeys(MODELS, 1)
    assert world.server.writes == {}
