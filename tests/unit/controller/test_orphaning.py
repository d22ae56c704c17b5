"""`kubectl delete --cascade=orphan`: no view that lags behind may delete what is to stay.

The API server marks the model (deletionTimestamp, finalizer `orphan`); the garbage collector takes the owner
away from the children, and then the finalizer. Each of these comes by a watch of its own, in any order.
"""

from __future__ import annotations

import pytest

from bowsprit.cluster.resources import DEPLOYMENTS, MODEL_DEPLOYMENTS, Resource
from tests.unit.controller.world import World

CHILDREN = {"ControllerRevision", "Deployment", "Service"}


@pytest.fixture
async def world() -> World:
    made = World()
    made.node("n1")
    await made.serve("a")
    return made


def mark(world: World, *finalizers: str) -> None:
    model = world.server.objects[MODEL_DEPLOYMENTS]["team", "a"]
    meta = {**model["metadata"], "deletionTimestamp": "t", "finalizers": list(finalizers)}
    world.book.models.upsert(world.server.put(MODEL_DEPLOYMENTS, {**model, "metadata": meta}))


def orphan(world: World) -> None:
    """Unseen by the operator's watches."""
    for resource in world.book.children:
        for child in list(world.server.objects.get(resource, {}).values()):
            child["metadata"].pop("ownerReferences", None)


def deleted(world: World) -> set[str]:
    kinds: list[Resource] = [resource for resource, _ in world.server.deleted]
    return {resource.kind for resource in kinds}


async def test_children_are_left_to_the_garbage_collector_while_it_orphans_them(world: World) -> None:
    mark(world, "orphan")
    await world.settle()
    assert deleted(world) == set()


async def test_orphans_stay_though_they_were_not_seen_to_lose_their_owner(world: World) -> None:
    orphan(world)
    world.remove_model("a")
    await world.settle()
    assert deleted(world) == set()


async def test_they_stay_too_when_a_model_of_the_name_is_there_at_once(world: World) -> None:
    orphan(world)
    world.remove_model("a")
    world.model("a")
    await world.settle()
    assert deleted(world) == set()


@pytest.mark.parametrize("finalizers", [(), ("foregroundDeletion",)])
async def test_all_others_are_deleted_at_once(world: World, finalizers: tuple[str, ...]) -> None:
    mark(world, *finalizers)
    await world.settle()
    assert deleted(world) == CHILDREN
    assert not world.server.objects[DEPLOYMENTS]
