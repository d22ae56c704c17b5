"""No GPU is promised twice, however the API server's answers to pins get lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.cluster.errors import ClusterError, Conflict, Refused, Unavailable
from bowsprit.cluster.resources import DEPLOYMENTS, MODEL_DEPLOYMENTS, PODS, Resource
from bowsprit.inventory.pods import pod_facts
from bowsprit.plan.key import ModelKey
from bowsprit.render.names import PLACEMENT_GATE
from tests.unit.controller.world import Json, Server, World

Late = Callable[[], Awaitable[Any]]


class Lossy(Server):
    """Its answers to pins get lost: carried out, not carried out, or carried out later."""

    def __init__(self) -> None:
        super().__init__()
        self.fate = "answered"
        self.error: ClusterError = Unavailable("TimeoutError")
        self.late: list[Late] = []

    async def json_patch(self, resource: Resource, namespace: str | None, name: str, operations: Any) -> Json:
        done = super().json_patch
        if self.fate == "answered":
            return await done(resource, namespace, name, operations)
        if self.fate == "done":
            await done(resource, namespace, name, operations)
        if self.fate == "late":
            self.late.append(lambda: done(resource, namespace, name, operations))
        raise self.error

    async def catch_up(self) -> None:
        """What was under way arrives."""
        late, self.late = self.late, []
        for request in late:
            try:
                await request()
            except ClusterError:
                continue

    def pinned(self) -> Counter[str]:
        """GPUs by node of pods that the scheduler may bind."""
        views = [pod_facts(pod) for pod in self.objects.get(PODS, {}).values()]
        return Counter(view.node for view in views if view.node and PLACEMENT_GATE not in view.gates)


class Lagging(World):
    """Its watch of pods shows what is there when a test says so; other controllers work when it says so."""

    def __init__(self) -> None:
        self.lossy = Lossy()
        super().__init__(self.lossy)

    def create_pods(self) -> None:
        """What ReplicaSets do; new pods are seen at once."""
        for (namespace, name), workload in self.server.objects.get(DEPLOYMENTS, {}).items():
            if (namespace, f"{name}-abc-1") not in self.server.objects.get(PODS, {}):
                self.pod(workload["metadata"]["labels"]["bowsprit.dev/model"], phase="Pending")

    def collect(self) -> None:
        """What the garbage collector does."""
        workloads = self.server.objects.get(DEPLOYMENTS, {})
        for namespace, name in list(self.server.objects.get(PODS, {})):
            if (namespace, name.removesuffix("-abc-1")) not in workloads:
                self.server.deleted.append((PODS, self.server.take(PODS, namespace, name)))

    async def deploy(self, name: str) -> None:
        """As far as its pod and a pin, if there is a GPU for it."""
        self.model(name)
        await self.settle()
        self.create_pods()
        await self.settle()

    def see(self) -> None:
        for resource, gone in self.server.deleted:
            {PODS: self.book.pods, **self.book.children}[resource].remove(gone)
        self.server.deleted.clear()
        for pod in self.server.objects.get(PODS, {}).values():
            self.book.pods.upsert(pod)

    async def work(self) -> None:
        """A pass over everything, as after the pauses of all retries."""
        for key in {*(declared.key for declared in self.book.models), *self.reconciler._models}:
            self.queue.add(key)
        await self.settle()

    async def at_rest(self) -> None:
        """Everything answers, arrives and is seen, until nothing changes any more."""
        self.lossy.fate = "answered"
        await self.lossy.catch_up()
        for _ in range(4):
            self.collect()
            self.create_pods()
            self.see()
            await self.work()


LOST: dict[str, ClusterError] = {
    "a timeout": Unavailable("PATCH /pods: TimeoutError "),
    "a reset": Unavailable("PATCH /pods: ServerDisconnectedError "),
    "an error of the server": Unavailable("etcdserver: request timed out", 500),
    "a proxy's": Unavailable("HTTP 504: upstream timed out", 504),
    "a conflict": Conflict("the object has been modified", 409),
}


@pytest.fixture
async def world() -> Lagging:
    made = Lagging()
    made.node("n1", gpus=1)
    return made


async def unanswered(world: Lagging, name: str, fate: str) -> None:
    """A model whose pin has ended without an answer."""
    world.lossy.fate = fate
    await world.deploy(name)
    assert world.book.pods_of(ModelKey("team", name))
    world.lossy.fate = "answered"


@pytest.mark.parametrize("error", LOST.values(), ids=LOST)
@pytest.mark.parametrize("fate", ["done", "late", "lost"])
async def test_a_pin_without_an_answer_keeps_its_gpu_from_others_until_the_pod_is_seen(
    fate: str, error: ClusterError, world: Lagging
) -> None:
    world.lossy.error = error
    await unanswered(world, "a", fate)
    world.remove_model("a")
    await world.deploy("b")
    assert world.lossy.pinned()["n1"] <= 1
    await world.lossy.catch_up()
    assert world.lossy.pinned()["n1"] <= 1
    await world.at_rest()
    assert world.lossy.pinned() == {"n1": 1}
    assert world.server.objects[MODEL_DEPLOYMENTS]["team", "b"]["status"]["revisions"]


@pytest.mark.parametrize("error", LOST.values(), ids=LOST)
@pytest.mark.parametrize("fate", ["done", "late", "lost"])
async def test_a_pin_without_an_answer_is_made_again_for_its_own_pod(
    fate: str, error: ClusterError, world: Lagging
) -> None:
    world.lossy.error = error
    await unanswered(world, "a", fate)
    await world.work()
    assert world.lossy.pinned() == {"n1": 1}
    # An answer to the second pin ends the first: it tests the gate, which is gone.
    await world.lossy.catch_up()
    assert world.lossy.pinned() == {"n1": 1}
    assert world.book.reservations.load() == {}


async def test_a_pin_that_was_never_sent_reserves_nothing(world: Lagging) -> None:
    world.model("a")
    await world.settle()
    world.create_pods()
    get = world.server.get
    world.server.get = _unavailable  # type: ignore[method-assign]
    await world.settle()
    assert world.book.reservations.load() == {}
    world.server.get = get  # type: ignore[method-assign]
    await world.work()
    assert world.lossy.pinned() == {"n1": 1}


async def test_a_failure_before_the_second_pin_does_not_forget_the_first(world: Lagging) -> None:
    await unanswered(world, "a", "late")
    get = world.server.get
    world.server.get = _unavailable  # type: ignore[method-assign]
    await world.work()
    world.server.get = get  # type: ignore[method-assign]
    assert world.book.reservations.load()["n1", "GPUs"] == 1


async def test_a_pin_that_is_refused_reserves_nothing(world: Lagging) -> None:
    world.lossy.error = Refused("a policy says no", 422)
    await unanswered(world, "a", "lost")
    assert world.book.reservations.load() == {}


async def _unavailable(*_: Any) -> Json:
    raise Unavailable("down")


ACTS = st.one_of(
    st.tuples(st.sampled_from(["deploy", "remove"]), st.sampled_from("abc")),
    st.tuples(st.just("fate"), st.sampled_from(["answered", "done", "done", "late", "late", "lost"])),
    st.tuples(st.sampled_from(["work", "see", "arrive", "collect"]), st.just("")),
)


async def history(acts: list[tuple[str, str]], gpus: list[int]) -> None:
    world = Lagging()
    capacity = {f"n{number}": count for number, count in enumerate(gpus)}
    for node, count in capacity.items():
        world.node(node, gpus=count)
    for act, subject in acts:
        there = ("team", subject) in world.server.objects.get(MODEL_DEPLOYMENTS, {})
        match act:
            case "deploy" if not there:
                await world.deploy(subject)
            case "remove" if there:
                world.remove_model(subject)
            case "fate":
                world.lossy.fate = subject
            case "work":
                await world.work()
            case "see":
                world.see()
            case "collect":
                world.collect()
            case "arrive":
                await world.lossy.catch_up()
        fouls = {node: held for node, held in world.lossy.pinned().items() if held > capacity[node]}
        assert not fouls, (act, subject)
    await world.at_rest()
    models = len(world.server.objects.get(MODEL_DEPLOYMENTS, {}))
    assert world.lossy.pinned().total() == min(models, sum(gpus))


@settings(max_examples=80, deadline=None)
@given(st.lists(ACTS, min_size=8, max_size=30), st.sampled_from([[1], [2], [1, 1]]))
def test_no_history_pins_more_pods_than_a_node_has_gpus_and_all_that_fit_are_pinned_in_the_end(
    acts: list[tuple[str, str]], gpus: list[int]
) -> None:
    asyncio.run(history(acts, gpus))
