"""A revision that fails gives way to the one that served before, whatever becomes of the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from bowsprit.cluster.errors import Unavailable
from bowsprit.cluster.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    MODEL_DEPLOYMENTS,
    PODS,
    SERVICES,
    Resource,
)
from bowsprit.controller.writer import STATUS_PAUSE_S
from tests.unit.controller.world import Json, Server, World

pytestmark = pytest.mark.looptime

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
STARTING = {"phase": "Running"}
BAD, WORSE = {"args": ["--seed=1"]}, {"args": ["--seed=2"]}
SHORT = {"progressDeadlineSeconds": 60}


class Mortal(Server):
    """Takes so many writes; after that nothing of what the operator says arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 10**6

    def _count(self) -> None:
        if self.left <= 0:
            raise Unavailable("killed")
        self.left -= 1

    async def apply(self, resource: Resource, manifest: Mapping[str, Any]) -> Json:
        self._count()
        return await super().apply(resource, manifest)

    async def merge_patch(self, *arguments: Any) -> Json:
        self._count()
        return await super().merge_patch(*arguments)

    async def json_patch(self, *arguments: Any) -> Json:
        self._count()
        return await super().json_patch(*arguments)

    async def delete(self, *arguments: Any, **options: Any) -> None:
        self._count()
        await super().delete(*arguments, **options)

    async def create(self, *arguments: Any) -> Json:
        self._count()
        return await super().create(*arguments)


def status(world: World) -> Json:
    return dict(world.server.objects[MODEL_DEPLOYMENTS]["team", "llama"]["status"])


def condition(world: World, name: str) -> Json:
    return next(dict(each) for each in status(world)["conditions"] if each["type"] == name)


def workloads(world: World) -> dict[str, str]:
    """Revision -> name of its workload."""
    found = world.server.objects.get(DEPLOYMENTS, {}).values()
    return {each["metadata"]["labels"]["bowsprit.dev/revision"]: each["metadata"]["name"] for each in found}


def pods(world: World) -> dict[str, str]:
    """Pod -> revision."""
    found = world.server.objects.get(PODS, {}).values()
    return {each["metadata"]["name"]: each["metadata"]["labels"]["bowsprit.dev/revision"] for each in found}


def selected(world: World) -> str:
    return str(world.server.objects[SERVICES]["team", "llama"]["spec"]["selector"]["bowsprit.dev/revision"])


async def settle(world: World) -> None:
    """As the cluster would go along: what was deleted is seen to be gone; pods whose workload is gone, go; a
    workload without a pod gets one."""
    for number in range(10):
        await world.settle()
        await asyncio.sleep(STATUS_PAUSE_S)
        await world.settle()
        for resource, gone_object in world.server.deleted:
            if resource in world.book.children:
                world.book.children[resource].remove(gone_object)
        world.server.deleted.clear()
        before = (pods(world), workloads(world))
        gone = [name for name, revision in pods(world).items() if revision not in workloads(world)]
        for name in gone:
            world.book.pods.remove(world.server.take(PODS, "team", name))
        for revision in workloads(world).keys() - set(pods(world).values()):
            world.pod("llama", number, revision, phase="Pending")
        if before == (pods(world), workloads(world)):
            return


async def serving(gpus: int, server: Server | None = None) -> tuple[World, str]:
    """The world, and the revision that serves."""
    world = World(server)
    for number in range(gpus):
        world.node(f"n{number}", gpus=1)
    world.model("llama", rollout=SHORT)
    await settle(world)
    (revision,) = workloads(world)
    run(world, revision, **READY)
    await settle(world)
    assert condition(world, "Ready")["status"] == "True"
    return world, revision


def run(world: World, revision: str, **how: Any) -> None:
    """The kubelet takes the pod of a revision, and it comes so far."""
    (name,) = (pod for pod, its in pods(world).items() if its == revision)
    world.pod("llama", int(name.rsplit("-", 1)[1]), revision, **how)


async def edited(world: World, old: str, **spec: Any) -> str:
    """The revision that an edit asks for, when its pod is there."""
    world.model("llama", rollout=SHORT, **spec)
    await settle(world)
    new = str(status(world)["revisions"]["target"])
    assert new != old
    run(world, new, **STARTING)
    await settle(world)
    return new


def later(world: World, minutes: int) -> None:
    world.time = f"2026-11-30T12:{minutes:02}:00Z"


@pytest.mark.parametrize("gpus", [2, 1], ids=["beside the old one", "in its place"])
async def test_the_old_revision_serves_again_when_the_new_one_is_late(gpus: int) -> None:
    world, old = await serving(gpus)
    before = pods(world)
    new = await edited(world, old, engine=BAD)
    assert status(world)["revisions"] == {
        "serving": old,
        "target": new,
        "progress": {"ready": 0, "since": "2026-11-30T12:00:00Z"},
    }
    later(world, 1)
    async with asyncio.timeout(70):  # It comes back by itself when the clock runs out.
        while "failed" not in status(world)["revisions"]:
            await world.reconciler.step()
            await world.reconciler.drain()
    await settle(world)
    assert list(workloads(world)) == [old]
    if gpus == 2:
        assert pods(world) == before, "what serves is not touched"
    else:
        run(world, old, **READY)
        await settle(world)
    assert selected(world) == old
    revisions = status(world)["revisions"]
    assert (revisions["serving"], revisions["target"]) == (old, new)
    assert revisions["failed"]["reason"] == "ProgressDeadlineExceeded"
    assert status(world)["readyReplicas"] == 1
    assert condition(world, "Stalled")["status"] == "True"
    assert condition(world, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    assert f"Revision {old}, which served before, is restored" in condition(world, "Stalled")["message"]
    assert condition(world, "GPUsReserved")["status"] == "True"
    assert [entry["revision"] for entry in status(world)["plan"]["replicas"]] == [old]


async def rolled_back(gpus: int = 2) -> tuple[World, str, str]:
    world, old = await serving(gpus)
    new = await edited(world, old, engine=BAD)
    later(world, 1)
    world.queue.add(next(iter(world.book.models)).key)
    await settle(world)
    assert list(workloads(world)) == [old]
    return world, old, new


async def test_another_operator_does_not_try_it_again_and_writes_nothing() -> None:
    before, old, _ = await rolled_back()
    world = World(before.server)
    world.time = "2026-12-24T18:00:00Z"
    world.server.writes.clear()
    world.relist()
    await settle(world)
    assert not world.server.writes
    assert list(workloads(world)) == [old]


async def test_what_stands_in_is_scaled_and_healed() -> None:
    world, old, _ = await rolled_back()
    world.model("llama", rollout=SHORT, engine=BAD, replicas=2)
    await settle(world)
    (workload,) = world.server.objects.get(DEPLOYMENTS, {}).values()
    assert workload["spec"]["replicas"] == 2
    assert list(workloads(world)) == [old]
    assert condition(world, "Stalled")["reason"] == "ProgressDeadlineExceeded"


async def test_a_failed_one_that_answers_in_part_is_not_taken_up_again_while_the_old_one_answers() -> None:
    """As few of the old one may be ready for a moment: a node is lost, a probe is late."""
    world = World()
    for number in range(6):
        world.node(f"n{number}", gpus=1)
    world.model("llama", rollout=SHORT, replicas=3)
    await world.settle()
    (old,) = workloads(world)
    for state in ({"phase": "Pending"}, READY):
        for number in (1, 2, 3):
            world.pod("llama", number, old, **state)
        await world.settle()
    world.model("llama", rollout=SHORT, replicas=3, engine=BAD)
    await world.settle()
    (new,) = workloads(world).keys() - {old}
    for states in ([{"phase": "Pending"}] * 3, [READY, STARTING, STARTING]):
        for number, its in enumerate(states, 4):
            world.pod("llama", number, new, **its)
        await world.settle()
    gone = next(pod.name for pod in world.book.pods if pod.deletion_cost)
    world.book.pods.remove(world.server.take(PODS, "team", gone))
    later(world, 1)
    world.queue.add(next(iter(world.book.models)).key)
    await world.settle()
    assert status(world)["revisions"]["failed"]["revision"] == new
    assert list(workloads(world)) == [old], "nothing of the failed one keeps GPUs from the old one"
    left = next(name for name, revision in pods(world).items() if revision == old)
    world.pod("llama", int(left.rsplit("-", 1)[1]), old, **STARTING)
    await world.settle()
    assert sorted(pods(world)[pod.name] for pod in world.book.pods if pod.ready) == sorted([old, new])
    assert status(world)["revisions"]["failed"]["revision"] == new
    assert selected(world) == old


async def test_another_edit_is_tried_and_the_failure_forgotten() -> None:
    world, old, new = await rolled_back()
    newer = await edited(world, old, engine=WORSE)
    assert set(workloads(world)) == {old, newer}
    assert "failed" not in status(world)["revisions"]
    run(world, newer, **READY)
    await settle(world)
    assert list(workloads(world)) == [newer]
    assert condition(world, "Ready")["status"] == "True"
    # And what failed once may be tried again when the spec comes back to it.
    world.model("llama", rollout=SHORT, engine=BAD)
    await settle(world)
    assert set(workloads(world)) == {newer, new}


async def test_an_edit_while_it_is_late_starts_the_new_one_with_a_clock_of_its_own() -> None:
    world, old = await serving(2)
    first = await edited(world, old, engine=BAD)
    later(world, 1)
    second = await edited(world, old, engine=WORSE)
    assert set(workloads(world)) == {old, second}
    assert first not in workloads(world)
    assert status(world)["revisions"]["progress"]["since"] == world.time


async def test_going_back_to_the_old_spec_is_no_failure_any_more() -> None:
    world, old, _ = await rolled_back()
    before = pods(world)
    world.model("llama", rollout=SHORT)
    await settle(world)
    assert status(world)["revisions"] == {"serving": old, "target": old}
    assert condition(world, "Ready")["status"] == "True"
    assert pods(world) == before


async def test_where_the_spec_wants_no_rollback_it_is_tried_on_and_serves_when_it_can() -> None:
    world, old = await serving(2)
    world.model("llama", rollout={**SHORT, "rollbackOnFailure": False}, engine=BAD)
    await settle(world)
    new = status(world)["revisions"]["target"]
    run(world, new, **STARTING)
    await settle(world)
    later(world, 1)
    world.queue.add(next(iter(world.book.models)).key)
    await settle(world)
    assert set(workloads(world)) == {old, new}
    assert condition(world, "Stalled")["reason"] == "ProgressDeadlineExceeded"
    run(world, new, **READY)
    await settle(world)
    assert condition(world, "Ready")["status"] == "True"
    assert status(world)["revisions"] == {"serving": new, "target": new}


async def test_a_first_revision_that_fails_is_tried_on_and_another_takes_its_place_at_once() -> None:
    world = World()
    world.node("n0", gpus=1)
    world.model("llama", rollout={**SHORT, "mode": "Surge"})
    await settle(world)
    (first,) = workloads(world)
    run(world, first, **STARTING)
    await settle(world)
    later(world, 1)
    world.queue.add(next(iter(world.book.models)).key)
    await settle(world)
    assert "serving" not in status(world)["revisions"]
    assert status(world)["revisions"]["failed"]["revision"] == first
    assert list(workloads(world)) == [first]
    # Even where only surging is allowed: nothing of the old one is worth keeping.
    world.model("llama", rollout={**SHORT, "mode": "Surge"}, engine=BAD)
    await settle(world)
    (second,) = workloads(world)
    assert second != first
    assert selected(world) == second


async def test_waiting_for_gpus_is_no_failure() -> None:
    world, old = await serving(1)
    world.model("llama", rollout={**SHORT, "mode": "Surge"}, engine=BAD)
    await settle(world)
    later(world, 59)
    world.queue.add(next(iter(world.book.models)).key)
    await settle(world)
    assert "failed" not in status(world)["revisions"]
    assert "progress" not in status(world)["revisions"]
    assert list(workloads(world)) == [old]


async def test_what_would_be_restored_outlives_the_history_limit() -> None:
    world, old = await serving(1)
    world.model("llama", rollout={**SHORT, "revisionHistoryLimit": 0}, engine=BAD)
    await settle(world)
    assert old not in workloads(world), "it has given its GPU up"
    kept = world.server.objects[CONTROLLER_REVISIONS].values()
    assert old in {each["metadata"]["labels"]["bowsprit.dev/revision"] for each in kept}


@pytest.mark.parametrize("gpus", [2, 1], ids=["beside", "in place"])
async def test_an_operator_killed_between_any_two_writes_comes_to_the_same_end(gpus: int) -> None:
    """Killed `number` writes after the deadline; the next one goes on from what it finds."""
    writes = 0
    while True:
        server = Mortal()
        world, old = await serving(gpus, server)
        new = await edited(world, old, engine=BAD)
        later(world, 1)
        server.left = writes
        world.queue.add(next(iter(world.book.models)).key)
        await settle(world)
        ended, server.left = server.left > 0, 10**6
        world = World(server)
        world.time = "2026-11-30T12:02:00Z"
        world.relist()
        await settle(world)
        if gpus == 1:
            run(world, old, **READY)
            await settle(world)
        assert list(workloads(world)) == [old]
        assert set(pods(world).values()) == {old}
        assert selected(world) == old
        assert status(world)["revisions"]["failed"]["revision"] == new
        assert status(world)["readyReplicas"] == 1
        if ended:
            break
        writes += 1
    assert writes >= 4
