"""Passes of the loop over a book of real objects, with a writer that only takes notes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from bowsprit.api.v1alpha1 import API_VERSION
from bowsprit.cluster.errors import Unavailable
from bowsprit.controller import backoff
from bowsprit.controller.book import Book
from bowsprit.controller.children import Child
from bowsprit.controller.frame import Declared, Frame
from bowsprit.controller.groups import LWS_GROUP, LWS_NAME, LWS_RANK
from bowsprit.controller.knowledge import Knowledge
from bowsprit.controller.metrics import Metrics
from bowsprit.controller.queue import WorkQueue
from bowsprit.controller.reconcile import Reconciler
from bowsprit.controller.settings import Settings
from bowsprit.controller.steps import Steps
from bowsprit.facts.config_map import facts_from_config_map
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey
from bowsprit.render.names import PLACEMENT_GATE
from bowsprit.status.observed import ApplyError
from tests.models import LLAMA_8B
from tests.unit.inventory.objects import node

FACTS = facts_from_config_map("c", "team", {"data": {"config.json": json.dumps(LLAMA_8B)}}, {})
A, B = ModelKey("team", "a"), ModelKey("team", "b")


class Facts:
    """The same facts for every model, but those that cannot be read."""

    def __init__(self) -> None:
        self.unreadable: set[ModelKey] = set()

    async def read(self, declared: Declared) -> Knowledge:
        if declared.key in self.unreadable:
            raise Unavailable("ConfigMaps cannot be read now")
        return Knowledge(FACTS)

    def is_read(self, declared: Declared) -> bool:
        return declared.key not in self.unreadable

    def forget(self, key: ModelKey) -> None:
        pass


class Notes:
    """A writer that writes down what it is told; writes of held models take until they are let go."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.steps: dict[ModelKey, Steps] = {}
        self.status: dict[ModelKey, dict[str, Any]] = {}
        self.swept: list[ModelKey] = []
        self.sweep_fails: set[ModelKey] = set()
        self.held: dict[ModelKey, asyncio.Event] = {}

    def now(self) -> str:
        return "2026-01-01T00:00:00Z"

    async def write(self, frame: Frame, status: Any, steps: Steps) -> tuple[ApplyError, ...]:
        self.steps[frame.key], self.status[frame.key] = steps, status
        if frame.key in self.held:
            await self.held[frame.key].wait()
        return ()

    def hold(self, key: ModelKey) -> None:
        self.held[key] = asyncio.Event()

    def let_go(self) -> None:
        for event in self.held.values():
            event.set()

    async def sweep(self, key: ModelKey, children: Iterable[Child]) -> None:
        if key in self.sweep_fails:
            raise Unavailable("a webhook does not answer")
        self.swept.append(key)


class Stage:
    """One node of a GPU, models, and the loop."""

    def __init__(self) -> None:
        self.book = Book(WorkQueue(settle_s=0), ProductTable())
        self.book.set_lws_installed(True)
        self.facts, self.notes = Facts(), Notes(self.book)
        self.loop = Reconciler(self.book, self.facts, self.notes, Metrics(), Settings())  # type: ignore[arg-type]
        self._version = 100

    async def passes(self) -> None:
        """As many as there is something to do for."""
        while len(self.book.queue):
            await self.loop.step()
            await asyncio.sleep(0)

    def node(self, name: str = "n1", gpus: int = 1) -> None:
        self.book.nodes.upsert(self._dated(node(name, gpus, memory="81920")))

    def model(self, name: str, **spec: Any) -> None:
        self.book.models.upsert(self._dated(manifest(name, **spec)))

    def remove(self, name: str) -> None:
        self.book.models.remove(self._dated(manifest(name)))

    def apply(self, key: ModelKey) -> None:
        """Carries out what was noted: the workload is there, with a gated pod."""
        for each in self.notes.steps[key].manifests:
            child = self._dated({**each, "metadata": {**each["metadata"], "uid": f"uid-{each['kind']}"}})
            for resource, cache in self.book.children.items():
                if resource.kind == each["kind"]:
                    cache.upsert(child)
            if each["kind"] == "Deployment":
                self.book.pods.upsert(self._dated(gated(each)))

    def rank(self, key: ModelKey, number: int, node: str, uid: str = "", **status: Any) -> None:
        """A pod of the first group of the model's LeaderWorkerSet: bound to a node, or new and gated."""
        lws = next(each for each in self.notes.steps[key].manifests if each["kind"] == "LeaderWorkerSet")
        template = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        name = lws["metadata"]["name"]
        labels = {**template["metadata"]["labels"], LWS_NAME: name, LWS_GROUP: "0", LWS_RANK: str(number)}
        spec = {**template["spec"], "nodeName": node, "schedulingGates": []}
        if not node:
            spec = {**template["spec"], "schedulingGates": [{"name": PLACEMENT_GATE}]}
        uid = uid or f"uid-{number}-{node}"
        metadata = {"namespace": "team", "name": f"{name}-0-{number}", "uid": uid, "labels": labels}
        state = {"phase": "Running" if node else "Pending", **status}
        self.book.pods.upsert(self._dated({"metadata": metadata, "spec": spec, "status": state}))

    def pinned(self, key: ModelKey) -> list[str]:
        return [pin.node for pin in self.notes.steps[key].pins] if key in self.notes.steps else []

    def _dated(self, obj: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "ModelDeployment",
        "metadata": {
            "namespace": "team",
            "name": name,
            "uid": f"uid-of-{name}",
            "generation": 1 + len(spec),
            "creationTimestamp": f"2026-01-01T00:00:0{len(name)}Z",
        },
        "spec": {
            "model": {"uri": "hf://example/model"},
            "preflight": "Skip",
            "capacity": {"maxModelLen": 8192},
            **spec,
        },
    }


def gated(deployment: dict[str, Any]) -> dict[str, Any]:
    """The first pod of a Deployment."""
    template = deployment["spec"]["template"]
    name = f"{deployment['metadata']['name']}-7d9f-x"
    return {
        "metadata": {
            "namespace": "team",
            "name": name,
            "uid": f"uid-{name}",
            "labels": template["metadata"]["labels"],
        },
        "spec": {**template["spec"], "schedulingGates": [{"name": PLACEMENT_GATE}]},
        "status": {"phase": "Pending"},
    }


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    stage.node()
    yield stage
    stage.notes.let_go()
    await stage.loop.drain()


async def test_a_gpu_that_is_being_pinned_for_a_model_that_is_gone_is_not_given_to_another(
    stage: Stage,
) -> None:
    stage.model("a")
    await stage.passes()
    stage.apply(A)
    stage.notes.hold(A)
    await stage.passes()
    assert stage.pinned(A) == ["n1"]

    # That pin is on its way to the API server. The model goes, and another wants the GPU and has its pod.
    stage.remove("a")
    stage.model("b")
    await stage.passes()
    stage.apply(B)
    await stage.passes()
    assert [each["pods"] for each in stage.notes.status[B]["plan"]["replicas"]] == [
        [{"node": "n1", "gpus": 1}]
    ]
    assert stage.pinned(B) == []

    stage.notes.let_go()
    await stage.loop.drain()
    stage.book.queue.add(B)
    await stage.passes()
    assert stage.pinned(B) == ["n1"]


async def test_a_model_that_cannot_be_read_does_not_stop_the_others(stage: Stage) -> None:
    stage.facts.unreadable = {A}
    stage.model("a")
    stage.model("b")
    await stage.passes()
    assert A not in stage.notes.status
    assert stage.notes.status[B]["conditions"]
    assert stage.book.queue.delayed >= 1


async def test_a_model_whose_children_cannot_be_deleted_does_not_stop_the_others(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    stage.notes.sweep_fails = {A}
    stage.remove("a")
    stage.model("b")
    await stage.passes()
    assert stage.notes.status[B]["plan"]["replicas"]
    assert A not in stage.notes.swept
    assert stage.book.queue.delayed >= 1


async def test_facts_that_cannot_be_read_again_leave_the_model_as_it_is(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    before = stage.notes.status[A]["plan"]
    stage.facts.unreadable = {A}
    stage.model("a", replicas=1)
    await stage.passes()
    assert stage.notes.status[A]["plan"] == before


async def test_our_own_status_is_no_reason_for_a_pass_and_anybody_elses_is(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    written = stage._dated({**manifest("a"), "status": stage.notes.status[A]})
    stage.book.status_written(written)
    assert len(stage.book.queue) == 0
    stage.book.models.upsert(stage._dated({**manifest("a"), "status": {}}))
    assert len(stage.book.queue) == 1


async def test_a_promise_stays_though_nothing_is_seen_of_it_before_the_next_pass(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    promised = stage.notes.status[A]["plan"]
    stage.model("b", priority=10)
    await stage.passes()
    assert stage.notes.status[A]["plan"] == promised
    assert "plan" not in stage.notes.status[B]
    assert stage.notes.status[B]["waiting"]["position"] == 1


async def test_a_group_whose_promise_is_given_up_goes_whole_though_nothing_more_is_seen_of_it(
    stage: Stage,
) -> None:
    """One rank is refused, and its StatefulSet has replaced the pod before anybody looks."""
    for name in ("n2", "n3"):
        stage.node(name)
    stage.model("a", parallelism={"pipeline": 2, "gpusPerPod": 1})
    await stage.passes()
    stage.apply(A)
    first, second = (each["node"] for each in stage.notes.status[A]["plan"]["replicas"][0]["pods"])
    stage.rank(A, 0, first)
    stage.rank(A, 1, second)
    await stage.passes()
    stage.rank(A, 1, second, phase="Failed", reason="UnexpectedAdmissionError")
    stage.rank(A, 1, "")
    await stage.passes()
    assert {each.kind for each in stage.notes.steps[A].evictions} == {"Pod"}
    assert len(stage.notes.steps[A].evictions) == 2
    assert stage.pinned(A) == []


ENDED = {
    "containerStatuses": [
        {"name": "engine", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "lastState": {}}
    ]
}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
RESTARTED = {
    "containerStatuses": [
        {
            "name": "engine",
            "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "Error"}},
        }
    ]
}


async def two_ranks(stage: Stage) -> None:
    stage.node("n2")
    stage.model("a", parallelism={"pipeline": 2, "gpusPerPod": 1})
    await stage.passes()
    stage.apply(A)


async def serving(stage: Stage, life: int) -> None:
    """Both ranks of a group are new, get their nodes and are Ready."""
    for number in (0, 1):
        stage.rank(A, number, "", uid=f"life-{life}-{number}")
    await stage.passes()
    for number, pinned in enumerate(stage.pinned(A)):
        stage.rank(A, number, pinned, uid=f"life-{life}-{number}", **READY)
    await stage.passes()


def condition(stage: Stage) -> tuple[str, str]:
    (ready,) = (each for each in stage.notes.status[A]["conditions"] if each["type"] == "Ready")
    return ready["status"], ready["message"]


async def test_a_group_of_which_a_rank_ends_goes_whole_at_once_and_is_not_ready_until_it_serves_again(
    stage: Stage,
) -> None:
    await two_ranks(stage)
    await serving(stage, 1)
    assert condition(stage)[0] == "True"
    stage.rank(A, 1, "n2", uid="life-1-1", **ENDED)
    await stage.passes()
    assert {each.grace_seconds for each in stage.notes.steps[A].evictions} == {1}
    assert len(stage.notes.steps[A].evictions) == 2
    status, message = condition(stage)
    assert status == "False"
    assert "container engine ended with exit code 0. Its pods are replaced" in message
    await serving(stage, 2)
    assert condition(stage)[0] == "True"


async def test_a_group_whose_rank_was_started_again_in_place_is_not_ready(stage: Stage) -> None:
    """The kubelet may show the end of a container and its new start at once."""
    await two_ranks(stage)
    await serving(stage, 1)
    stage.rank(A, 1, "n2", uid="life-1-1", **RESTARTED, **READY)
    await stage.passes()
    assert condition(stage)[0] == "False"
    assert len(stage.notes.steps[A].evictions) == 2


async def test_a_group_that_dies_again_gets_its_nodes_after_a_pause(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "START_S", 0.05)
    await two_ranks(stage)
    for life in (1, 2):
        await serving(stage, life)
        assert condition(stage)[0] == "True"
        stage.rank(A, 1, "n2", uid=f"life-{life}-1", **RESTARTED)
        await stage.passes()
    for number in (0, 1):
        stage.rank(A, number, "", uid=f"life-3-{number}")
    await stage.passes()
    assert stage.pinned(A) == []
    assert "2 deaths in a row: it starts again 0.05 s after the last." in condition(stage)[1]
    await stage.loop.step()  # the end of the pause wakes it
    await stage.loop.drain()
    assert stage.pinned(A) == ["n1", "n2"]
