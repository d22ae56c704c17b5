"""The loop over a book of real objects, with a writer that takes notes, and what becomes of the notes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from bowsprit.api.names import MODEL_LABEL
from bowsprit.api.v1alpha1 import API_VERSION
from bowsprit.cluster.cache import Cache
from bowsprit.cluster.errors import Unavailable
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
from tests.unit.inventory.objects import node, pin

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


Admission = Callable[[dict[str, Any]], dict[str, Any]]


def _nothing(spec: dict[str, Any]) -> dict[str, Any]:
    return spec


class Stage:
    """One node of a GPU, models, and the loop."""

    def __init__(self) -> None:
        self.book = Book(WorkQueue(settle_s=0), ProductTable())
        self.book.set_lws_installed(True)
        self.facts, self.notes = Facts(), Notes(self.book)
        self.loop = Reconciler(self.book, self.facts, self.notes, Metrics(), Settings())  # type: ignore[arg-type]
        self._version = 100
        self.admission: dict[ModelKey, Admission] = {}
        """What is done to the spec of a model's pods before they are stored."""
        self._pods: dict[tuple[ModelKey, str], dict[str, Any]] = {}
        """Of Deployments, by model and name of the workload."""

    async def passes(self) -> None:
        """As many as there is something to do for."""
        while len(self.book.queue):
            await self.loop.step()
            await asyncio.sleep(0)

    def node(self, name: str = "n1", gpus: int = 1, **others: str) -> None:
        self.book.nodes.upsert(self._dated(node(name, gpus, memory="81920", others=others)))

    def model(self, name: str, **spec: Any) -> None:
        self.book.models.upsert(self._dated(manifest(name, **spec)))

    def remove(self, name: str) -> None:
        self.book.models.remove(self._dated(manifest(name)))

    def apply(self, key: ModelKey) -> None:
        """Carries out what was noted, without the pins: the workload is there, with a gated pod."""
        for each in self.notes.steps[key].manifests:
            self._apply(key, each)

    def pinned_and_unlabelled(self, key: ModelKey, node: str) -> None:
        """The pod as it is pinned, not bound yet, and without the label of its model."""
        (name,) = (name for owner, name in self._pods if owner == key)
        pod = self._pods[key, name]
        labels = {label: text for label, text in pod["metadata"]["labels"].items() if label != MODEL_LABEL}
        spec = {**pod["spec"], "schedulingGates": [], "affinity": pin(node)}
        self.book.pods.upsert(
            self._dated({**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec})
        )

    async def play(self) -> None:
        """Passes, and all that they decide comes true, until nothing happens any more."""
        for _ in range(20):
            await self.passes()
            await self.loop.drain()
            done, self.notes.steps = self.notes.steps, {}
            if not [self._carry_out(key, steps) for key, steps in sorted(done.items())]:
                return
        raise AssertionError("it goes on and on")

    def held(self) -> dict[ModelKey, str]:
        """Nodes of the models whose pod is bound."""
        nodes = {key: pod["spec"].get("nodeName", "") for (key, _), pod in self._pods.items()}
        return {key: node for key, node in nodes.items() if node}

    def _carry_out(self, key: ModelKey, steps: Steps) -> None:
        for each in steps.manifests:
            self._apply(key, each)
        for deletion in steps.deletions:
            gone = {"metadata": {"namespace": key.namespace, "name": deletion.name, "uid": deletion.uid}}
            self._cache_of(deletion.kind).remove(self._dated(gone))
            if (pod := self._pods.pop((key, deletion.name), None)) is not None:
                self.book.pods.remove(self._dated(pod))
        for each in steps.pins:
            (workload,) = (name for name, pod in self._pods.items() if pod["metadata"]["uid"] == each.pod.uid)
            pod = self._pods[workload]
            self._pods[workload] = {
                **pod,
                "spec": {**pod["spec"], "nodeName": each.node, "schedulingGates": []},
            }
            self.book.pods.upsert(self._dated(self._pods[workload]))

    def _apply(self, key: ModelKey, workload: dict[str, Any]) -> None:
        kind, name = workload["kind"], workload["metadata"]["name"]
        child = {**workload, "metadata": {**workload["metadata"], "uid": f"uid-{kind}-{name}"}}
        self._cache_of(kind).upsert(self._dated(child))
        if kind == "Deployment" and (key, name) not in self._pods:
            pod = gated(workload)
            pod["spec"] = self.admission.get(key, _nothing)(pod["spec"])
            self._pods[key, name] = pod
            self.book.pods.upsert(self._dated(pod))

    def _cache_of(self, kind: str) -> Cache[Child]:
        return next(cache for resource, cache in self.book.children.items() if resource.kind == kind)

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
