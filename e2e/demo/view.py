"""What the demo sees of the cluster: watches on models, pods and nodes, as a user's own program would have.

Nothing is asked of the operator itself. The turning points are read from the statuses that it writes, by the
rule that it makes its Events with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from bowsprit.cli.inventory import Inventory
from bowsprit.cli.live import LiveCluster
from bowsprit.cluster.cache import Cache, ObjectKey
from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.listwatch import ListWatch
from bowsprit.cluster.resources import MODEL_DEPLOYMENTS, NODES, PODS
from bowsprit.inventory.nodes import NodeView, node_facts
from bowsprit.inventory.pods import PodView, pod_facts
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey
from bowsprit.status.events import EventNote, events_between
from bowsprit.status.replicas import RecordedReplica, replicas_from_status

Json = Mapping[str, Any]


class View:
    """The cluster now, and a bell that rings at each change."""

    def __init__(self, client: KubeClient, turned: Callable[[str, EventNote], None]) -> None:
        """turned: is told of each turning point in a model's life, with the model's name."""
        self.changed = asyncio.Event()
        self._turned = turned
        self._models: Cache[Json] = Cache(lambda obj: obj, self._model_changed)
        self._nodes: Cache[NodeView] = Cache(node_facts, self._ring)
        self._pods: Cache[PodView] = Cache(pod_facts, self._ring)
        self.watches = (
            ListWatch(client, MODEL_DEPLOYMENTS, self._models),
            ListWatch(client, NODES, self._nodes),
            ListWatch(client, PODS, self._pods),
        )

    @property
    def cluster(self) -> LiveCluster:
        """As `bowsprit map` and `bowsprit explain` read it."""
        inventory = Inventory(tuple(self._nodes), tuple(self._pods), ProductTable())
        return LiveCluster(inventory, {ModelKey(*key): model for key, model in self._models.items()})

    @property
    def models(self) -> list[str]:
        return sorted(key.name for key, _ in self._models.items())

    @property
    def nodes(self) -> set[str]:
        return {key.name for key, _ in self._nodes.items()}

    def status(self, name: str) -> Json:
        model = self._models.get(ObjectKey("default", name)) or {}
        return model.get("status") or {}

    def phase(self, name: str) -> str:
        """The phase, once the operator has looked at the newest spec; "" before that."""
        model = self._models.get(ObjectKey("default", name))
        if model is None or self.status(name).get("observedGeneration") != model["metadata"]["generation"]:
            return ""
        return str(self.status(name).get("phase", ""))

    def condition(self, name: str, kind: str) -> Json:
        conditions = self.status(name).get("conditions") or ()
        return next((each for each in conditions if each["type"] == kind), {})

    def short(self, name: str) -> int:
        """GPUs that the model says it lacks."""
        return int((self.status(name).get("waiting") or {}).get("gpusShort", 0))

    def replicas(self, name: str) -> list[RecordedReplica]:
        return list(replicas_from_status(self.status(name)))

    def gpus(self, name: str) -> int:
        """GPUs that the pods of the model hold."""
        model = str(ModelKey("default", name))
        held = (pod for pod in self._pods if pod.holds and pod.holder == model)
        return sum(count for pod in held for _, count in pod.gpus)

    def standing_on(self, name: str) -> set[str]:
        """Nodes that the plan gives to the model."""
        return {pod.node for each in self.replicas(name) for pod in each.replica.pods}

    def _model_changed(self, key: ObjectKey, before: Json | None, after: Json | None) -> None:
        if after is not None:
            for note in events_between((before or {}).get("status"), after.get("status") or {}):
                self._turned(key.name, note)
        self.changed.set()

    def _ring(self, key: ObjectKey, before: object, after: object) -> None:
        self.changed.set()
