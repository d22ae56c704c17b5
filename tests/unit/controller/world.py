"""The reconciler on an API server of dicts: it answers writes as the real one would, and counts them."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from bowsprit.api.defaults import RUNTIME_IMAGE
from bowsprit.cluster.cache import Cache, key_of
from bowsprit.cluster.client import FIELD_MANAGER, KubeClient
from bowsprit.cluster.errors import Conflict, NotFound, Refused
from bowsprit.cluster.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    MODEL_DEPLOYMENTS,
    NODES,
    PODS,
    Resource,
)
from bowsprit.controller.book import Book
from bowsprit.controller.factsource import FactSource
from bowsprit.controller.metrics import Metrics
from bowsprit.controller.queue import WorkQueue
from bowsprit.controller.reconcile import Reconciler
from bowsprit.controller.settings import Settings
from bowsprit.controller.writer import Writer
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey
from tests.models import LLAMA_8B
from tests.unit.json_patch import TestFailed, patched

Json = dict[str, Any]


class Server(KubeClient):
    """Keeps objects by resource and key; every write gives a new resourceVersion."""

    def __init__(self) -> None:
        self.objects: dict[Resource, dict[tuple[str, str], Json]] = {}
        self.writes: Counter[str] = Counter()
        self.deleted: list[tuple[Resource, Json]] = []
        """In order."""
        self._versions = itertools.count(1)

    def put(self, resource: Resource, obj: Mapping[str, Any]) -> Json:
        """Stores an object as a client would send it, with what a server adds."""
        stored = self.objects.setdefault(resource, {})
        key, version = key_of(obj), str(next(self._versions))
        before = stored.get(key, {"metadata": {"uid": f"uid-{resource.plural}-{'-'.join(key)}-{version}"}})
        meta = {**before["metadata"], **obj["metadata"], "resourceVersion": version}
        stored[key] = {**before, **obj, "metadata": meta}
        return stored[key]

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        found = self.objects.get(resource, {}).get((namespace or "", name))
        if found is None:
            raise NotFound(f"{resource.plural} {name}", 404)
        return found

    async def apply(self, resource: Resource, manifest: Mapping[str, Any]) -> Json:
        self.writes[f"apply {manifest['kind']}"] += 1
        fields = [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {}}}]
        meta = {**manifest["metadata"], "managedFields": fields}
        return self.put(resource, {**manifest, "metadata": meta})

    async def merge_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Mapping[str, Any],
        subresource: str | None = None,
    ) -> Json:
        self.writes[f"patch {resource.plural}{'/' if subresource else ''}{subresource or ''}"] += 1
        return self.put(resource, _merged(await self.get(resource, namespace, name), patch))

    async def json_patch(self, resource: Resource, namespace: str | None, name: str, operations: Any) -> Json:
        self.writes["pin"] += 1
        try:
            return self.put(resource, patched(await self.get(resource, namespace, name), operations))
        except TestFailed:
            raise Refused("the server rejected our request due to an error in our request", 422) from None

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        grace_seconds: int | None = None,
    ) -> None:
        self.writes[f"delete {resource.plural}"] += 1
        found = await self.get(resource, namespace, name)
        if found["metadata"]["uid"] != uid:
            raise Conflict(f"{resource.plural} {name} has another uid", 409)
        self.deleted.append((resource, self.take(resource, namespace or "", name)))

    def take(self, resource: Resource, namespace: str, name: str) -> Json:
        """Takes an object away; what a watch shows of it last is newer than all before."""
        gone = self.objects[resource].pop((namespace, name))
        version = {"resourceVersion": str(next(self._versions))}
        return {**gone, "metadata": {**gone["metadata"], **version}}

    async def create(self, resource: Resource, namespace: str | None, manifest: Mapping[str, Any]) -> Json:
        self.writes[f"create {resource.plural}"] += 1
        return dict(manifest)


def _merged(before: Mapping[str, Any], patch: Mapping[str, Any]) -> Json:
    merged = {key: value for key, value in before.items() if key not in patch or patch[key] is not None}
    for key, value in patch.items():
        if isinstance(value, Mapping):
            merged[key] = _merged(before.get(key) or {}, value)
        elif value is not None:
            merged[key] = value
    return merged


class World:
    """Nodes, models and pods, the operator's view of them, and its reconciler at work."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or Server()
        self.queue: WorkQueue[ModelKey] = WorkQueue(settle_s=0)
        self.book = Book(self.queue, ProductTable())
        self._metrics = Metrics()
        self.time = "2026-11-30T12:00:00Z"
        writer = Writer(self.server, self.book, lambda: True, lambda: self.time)
        facts = FactSource(self.server, self.book, RUNTIME_IMAGE)
        self.reconciler = Reconciler(self.book, facts, writer, self._metrics, Settings())

    @property
    def passes(self) -> int:
        count = self._metrics.registry.get_sample_value("bowsprit_reconcile_duration_seconds_count")
        return int(count or 0)

    def node(self, name: str, heartbeat: str = "", gpus: int = 4) -> None:
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
        labels = {"nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe", "nvidia.com/gpu.memory": "81920"}
        status = {"allocatable": {"nvidia.com/gpu": str(gpus)}, "conditions": [ready]}
        node = {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}
        self.book.nodes.upsert(self.server.put(NODES, node))

    def model(self, name: str, **changes: Any) -> None:
        """Applies a ModelDeployment, with the ConfigMap that it names."""
        meta = {"namespace": "team", "name": name}
        data = {"config.json": json.dumps(LLAMA_8B)}
        self.book.config_maps.upsert(self.server.put(CONFIG_MAPS, {"metadata": meta, "data": data}))
        spec = {
            "model": {"uri": "hf://example/model", "config": {"configMapRef": {"name": name}}},
            "preflight": "Skip",
            "capacity": {"maxModelLen": 8192},
            **changes,
        }
        known = self.server.objects.get(MODEL_DEPLOYMENTS, {}).get(("team", name))
        generation = known["metadata"]["generation"] + 1 if known else 1
        created = {**meta, "generation": generation, "creationTimestamp": "2026-11-30T11:00:00Z"}
        head = {"apiVersion": "bowsprit.dev/v1alpha1", "kind": "ModelDeployment"}
        stored = self.server.put(MODEL_DEPLOYMENTS, {**head, "metadata": created, "spec": spec})
        self.book.models.upsert(stored)

    def remove_model(self, name: str) -> None:
        self.book.models.remove(self.server.take(MODEL_DEPLOYMENTS, "team", name))

    def pod(self, model: str, number: int = 1, revision: str = "", **status: Any) -> None:
        """A pod of a model's only workload, or that of a revision, as the ReplicaSet made it; bound where it
        was pinned."""
        workload = next(
            each
            for each in self.server.objects[DEPLOYMENTS].values()
            if each["metadata"]["labels"]["bowsprit.dev/model"] == model
            and each["metadata"]["labels"]["bowsprit.dev/revision"].startswith(revision)
        )
        template, name = workload["spec"]["template"], f"{workload['metadata']['name']}-abc-{number}"
        meta = {**template["metadata"], "namespace": "team", "name": name}
        known = self.server.objects.get(PODS, {}).get(("team", name))
        spec = dict(known["spec"] if known else template["spec"])
        if status.get("phase") == "Running":
            required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            spec["nodeName"] = required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
        pod = {"metadata": meta, "spec": spec, "status": status}
        self.book.pods.upsert(self.server.put(PODS, pod))

    def relist(self) -> None:
        """What a resync does: everything is shown again, unchanged."""
        caches: list[tuple[Resource, Cache[Any]]] = [
            (NODES, self.book.nodes),
            (PODS, self.book.pods),
            (CONFIG_MAPS, self.book.config_maps),
            (MODEL_DEPLOYMENTS, self.book.models),
            *self.book.children.items(),
        ]
        for resource, cache in caches:
            for obj in self.server.objects.get(resource, {}).values():
                cache.upsert(obj)

    async def settle(self) -> None:
        """Lets the reconciler work until nothing is due any more."""
        while len(self.queue):
            await self.reconciler.step()
            await self.reconciler.drain()

    async def serve(self, *names: str) -> None:
        """Makes models and brings them to the end: planned, pinned, bound and ready."""
        for name in names:
            self.model(name)
        await self.settle()
        for name in names:
            self.pod(name, phase="Pending")
        await self.settle()
        for name in names:
            self.pod(name, phase="Running", conditions=[{"type": "Ready", "status": "True"}])
        await self.settle()
