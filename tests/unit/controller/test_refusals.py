"""What the API server refuses ends in a condition with its words, and is tried again after growing pauses."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bowsprit.cluster.errors import Refused
from bowsprit.cluster.resources import DEPLOYMENTS, MODEL_DEPLOYMENTS, Resource
from bowsprit.plan.key import ModelKey
from tests.unit.controller.world import Json, Server, World


class Strict(Server):
    """A policy refuses pins, deletions or workloads, with other words each time, as some webhooks do."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses, self.status = "", 403
        self._number = itertools.count(1)

    async def json_patch(self, *arguments: Any) -> Json:
        self._ask("pin")
        return await super().json_patch(*arguments)

    async def delete(self, *arguments: Any, **options: Any) -> None:
        self._ask("delete")
        await super().delete(*arguments, **options)

    async def apply(self, resource: Resource, manifest: Any) -> Json:
        if resource is DEPLOYMENTS:
            self._ask("apply")
        return await super().apply(resource, manifest)

    def _ask(self, what: str) -> None:
        if what == self.refuses:
            self.writes[f"refused {what}"] += 1
            raise Refused(f"no owner label (request {next(self._number)})", self.status)


@pytest.fixture
async def world() -> World:
    made = World(Strict())
    made.node("n1", gpus=1)
    return made


def condition(world: World, model: str, kind: str) -> Json:
    conditions = world.server.objects[MODEL_DEPLOYMENTS]["team", model]["status"]["conditions"]
    return next(each for each in conditions if each["type"] == kind)


async def refused(world: World, what: str) -> None:
    """A model, as far as the refusal."""
    world.server.refuses = what  # type: ignore[attr-defined]
    world.model("a")
    await world.settle()
    if what == "pin":
        world.pod("a", phase="Pending")
        await world.settle()


@pytest.mark.parametrize(("what", "target"), [("apply", "Deployment/a-"), ("pin", "Pod/a-")])
async def test_its_words_stand_in_the_condition_and_go_when_it_gives_way(
    what: str, target: str, world: World
) -> None:
    await refused(world, what)
    told = condition(world, "a", "Ready")
    assert told["reason"] == "ApplyFailed"
    assert f"The API server refused {target}" in told["message"]
    assert "no owner label (request " in told["message"]
    assert condition(world, "a", "Stalled")["status"] == "False"

    world.server.refuses = ""  # type: ignore[attr-defined]
    world.queue.add(ModelKey("team", "a"))
    await world.settle()
    world.pod("a", phase="Pending")
    await world.settle()
    world.pod("a", phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    await world.settle()
    assert condition(world, "a", "Ready")["status"] == "True"


@pytest.mark.parametrize("what", ["apply", "pin"])
async def test_each_try_is_one_and_the_next_comes_after_a_pause(what: str, world: World) -> None:
    """Though the words are others each time, so that the status changes."""
    await refused(world, what)
    for _ in range(3):
        tries = world.server.writes[f"refused {what}"]
        world.queue.add(ModelKey("team", "a"))
        await world.settle()
        assert world.server.writes[f"refused {what}"] == tries + 1
        assert f"(request {tries + 1})" in condition(world, "a", "Ready")["message"]
    assert world.queue.delayed


async def test_an_older_revision_that_the_api_server_refuses_is_no_fault_of_the_one_on_trial(
    world: World,
) -> None:
    """The clock of its trial does not begin before it holds GPUs."""
    world.node("n2", gpus=1)
    await world.serve("a")
    (old,) = world.server.objects[DEPLOYMENTS].values()
    world.model("a", engine={"args": ["--seed=1"]})
    await world.settle()
    world.server.refuses, world.server.status = "apply", 422  # type: ignore[attr-defined]
    edited = {**old, "spec": {**old["spec"], "replicas": 5}}
    world.book.children[DEPLOYMENTS].upsert(world.server.put(DEPLOYMENTS, edited))
    world.queue.add(ModelKey("team", "a"))
    await world.settle()
    assert world.server.writes["refused apply"]
    assert "progress" not in world.server.objects[MODEL_DEPLOYMENTS]["team", "a"]["status"]["revisions"]


async def test_what_a_deleted_model_left_is_tried_to_the_last(world: World) -> None:
    await refused(world, "delete")
    children = world.book.children_of(ModelKey("team", "a"))
    world.remove_model("a")
    await world.settle()
    assert world.server.writes["refused delete"] == len(children) > 1
    assert world.queue.delayed
