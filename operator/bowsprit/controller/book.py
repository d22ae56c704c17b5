"""What this process knows of the cluster, and what has changed since the last pass.

Caches feed it, whichever way their objects came (kopf's handlers or list-watches). It keeps the few indexes
that planning needs and turns changes into keys on the work queue; it decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bowsprit.api.names import MODEL_LABEL
from bowsprit.cluster.cache import Cache, ObjectKey, key_of
from bowsprit.cluster.resources import CHILDREN, DEPLOYMENTS, JOBS, LEADER_WORKER_SETS, Resource
from bowsprit.controller.children import Child, digest, project
from bowsprit.controller.complaints import Complaint
from bowsprit.controller.complaints import project as project_complaint
from bowsprit.controller.frame import Declared, declared_of
from bowsprit.controller.queue import WorkQueue
from bowsprit.controller.reservations import Reservations
from bowsprit.inventory.ledger import GpuLedger
from bowsprit.inventory.nodes import NodeView, node_facts
from bowsprit.inventory.pods import PodView, pod_facts
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey
from bowsprit.status.attempt import Attempt, attempt_of

FLEET = ModelKey("", "")
"""The key for changes that concern all models: nodes, and pods of others."""

View = TypeVar("View")


class Book:
    def __init__(self, queue: WorkQueue[ModelKey], products: ProductTable) -> None:
        self.queue = queue
        self.ledger = GpuLedger(products)
        self.lws_installed = False
        self.models: Cache[Declared] = Cache(self._declared, self._model_changed)
        self.nodes: Cache[NodeView] = Cache(node_facts, self._node_changed)
        self.pods: Cache[PodView] = Cache(_relevant_pod, self._pod_changed)
        self.reservations = Reservations(self.pods)
        self.children: dict[Resource, Cache[Child]] = {
            resource: Cache(partial(project, resource), self._child_changed) for resource in CHILDREN
        }
        self.config_maps: Cache[str] = Cache(_resource_version, self._config_map_changed)
        self.pod_seen: Callable[[PodView], None] = lambda pod: None
        """Called with every version of a pod of ours."""
        self.attempts: Cache[Attempt] = Cache(attempt_of, self._attempt_changed)
        """Pods of preflight Jobs."""
        self.complaints: Cache[Complaint] = Cache(project_complaint, self._complaint_changed)
        self._complaints_about: dict[ObjectKey, Complaint] = {}
        self._own_status: dict[ObjectKey, str] = {}
        """Model -> hash of the status that we wrote last."""
        self._pods_of: dict[ModelKey, dict[ObjectKey, PodView]] = defaultdict(dict)
        self._children_of: dict[ModelKey, dict[tuple[str, str], Child]] = defaultdict(dict)
        self._attempts_of: dict[ModelKey, dict[ObjectKey, Attempt]] = defaultdict(dict)
        self._users_of: dict[ObjectKey, set[ModelKey]] = defaultdict(set)

    @property
    def synced(self) -> bool:
        """Every cache has been filled by a full list at least once."""
        caches: tuple[Cache[Any], ...] = (
            self.models,
            self.nodes,
            self.pods,
            self.config_maps,
            self.attempts,
            *self.children.values(),
        )
        return all(cache.synced for cache in caches)

    def pods_of(self, key: ModelKey) -> tuple[PodView, ...]:
        return tuple(self._pods_of.get(key, {}).values())

    def attempts_of(self, key: ModelKey) -> tuple[Attempt, ...]:
        return tuple(self._attempts_of.get(key, {}).values())

    def children_of(self, key: ModelKey) -> tuple[Child, ...]:
        """What belongs to a model of this name, or did."""
        return tuple(self._children_of.get(key, {}).values())

    def child(self, resource: Resource, namespace: str, name: str) -> Child | None:
        return self.children[resource].get(ObjectKey(namespace, name))

    def complaint_about(self, workload: Child) -> Complaint | None:
        return self._complaints_about.get(ObjectKey(workload.namespace, workload.name))

    def node(self, name: str) -> NodeView | None:
        return self.nodes.get(ObjectKey("", name))

    def models_on(self, node: str) -> set[ModelKey]:
        """Models with pods on a node. Looks at all pods: nodes come and go seldom."""
        return {key for key, pods in self._pods_of.items() if any(pod.node == node for pod in pods.values())}

    def set_lws_installed(self, installed: bool) -> None:
        if not installed:
            self.children[LEADER_WORKER_SETS].clear()
        if installed != self.lws_installed:
            self.lws_installed = installed
            self._add_all(declared.key for declared in self.models)

    def status_written(self, model: Mapping[str, Any]) -> None:
        """Takes in the answer to our own write, which is no reason for another pass."""
        self._own_status[key_of(model)] = digest(model.get("status") or {})
        self.models.upsert(model)

    def _declared(self, obj: Mapping[str, Any]) -> Declared | None:
        """Parses a ModelDeployment once per generation: most of its updates are our own status."""
        meta = obj["metadata"]
        known = self.models.get(ObjectKey(meta["namespace"], meta["name"]))
        if known and known.uid == meta["uid"] and known.generation == meta.get("generation", 0):
            status = obj.get("status") or {}
            return replace(known, status=status, terminating="deletionTimestamp" in meta)
        return declared_of(obj)

    def _model_changed(self, key: ObjectKey, before: Declared | None, after: Declared | None) -> None:
        for declared, register in ((before, set.discard), (after, set.add)):
            source = config_map_of(declared)
            if source and declared:
                register(self._users_of[source], declared.key)
        if after is None:
            self._own_status.pop(key, None)
        only_status = before and after and replace(before, status={}) == replace(after, status={})
        ours = after is not None and digest(after.status) == self._own_status.get(key)
        if not (only_status and ours):
            self.queue.add(ModelKey(*key))

    def _node_changed(self, key: ObjectKey, before: NodeView | None, after: NodeView | None) -> None:
        if after is None:
            self.ledger.remove_node(key.name)
        else:
            self.ledger.upsert_node(after)
        self.queue.add(FLEET)
        if before is not None:
            self._add_all(self.models_on(key.name))

    def _pod_changed(self, key: ObjectKey, before: PodView | None, after: PodView | None) -> None:
        if after is None:
            self.ledger.remove_pod(*key)
        else:
            self.ledger.upsert_pod(after)
        if before is not None and (model := _model_of(before)) != FLEET:
            self._pods_of[model].pop(key, None)
        if after is not None and (model := _model_of(after)) != FLEET:
            self._pods_of[model][key] = after
            self.pod_seen(after)
        self._add_all(_model_of(pod) for pod in (before, after) if pod is not None and self._matters(pod))

    def _matters(self, pod: PodView) -> bool:
        """Most pods of a cluster have no GPUs and stand where there are none."""
        return bool(pod.gpus) or MODEL_LABEL in pod.labels or self.ledger.has_gpus(pod.node)

    def _child_changed(self, key: ObjectKey, before: Child | None, after: Child | None) -> None:
        for child in (before, after):
            if child is not None:
                self._children_of[child.key].pop((child.kind, child.name), None)
                self.queue.add(child.key)
        if after is not None:
            self._children_of[after.key][after.kind, after.name] = after

    def _attempt_changed(self, key: ObjectKey, before: Attempt | None, after: Attempt | None) -> None:
        for attempt in (before, after):
            if attempt is not None:
                model = ModelKey(attempt.namespace, attempt.model)
                self._attempts_of[model].pop(key, None)
                self.queue.add(model)
        if after is not None:
            self._attempts_of[ModelKey(after.namespace, after.model)][key] = after

    def _config_map_changed(self, key: ObjectKey, before: str | None, after: str | None) -> None:
        self._add_all(self._users_of.get(key, ()))

    def _complaint_changed(self, _: ObjectKey, before: Complaint | None, after: Complaint | None) -> None:
        about = {
            ObjectKey(complaint.namespace, name)
            for complaint in (before, after)
            if complaint is not None
            for name in complaint.workloads
        }
        for workload in about:
            self._note_complaint(workload, before, after)

    def _note_complaint(self, about: ObjectKey, before: Complaint | None, after: Complaint | None) -> None:
        if after is not None:
            self._complaints_about[about] = after
        elif self._complaints_about.get(about) == before:
            del self._complaints_about[about]
        for resource in (DEPLOYMENTS, LEADER_WORKER_SETS, JOBS):
            if (workload := self.child(resource, *about)) is not None:
                self.queue.add(workload.key)

    def _add_all(self, keys: Iterable[ModelKey]) -> None:
        for key in tuple(keys):
            self.queue.add(key)


def config_map_of(declared: Declared | None) -> ObjectKey | None:
    """The ConfigMap that a model takes its config.json from."""
    if declared is None or declared.deployment is None or declared.deployment.spec.model.config is None:
        return None
    return ObjectKey(declared.key.namespace, declared.deployment.spec.model.config.config_map_ref.name)


def _relevant_pod(obj: Mapping[str, Any]) -> PodView | None:
    """Of pods that neither hold GPUs nor are ours only what they take of their node; nothing without one."""
    pod = pod_facts(obj)
    if pod.gpus or MODEL_LABEL in pod.labels:
        return pod
    return (
        PodView(pod.namespace, pod.name, node=pod.node, bound=True, needs=pod.needs) if pod.is_there else None
    )


def _model_of(pod: PodView) -> ModelKey:
    """The model that a pod serves; FLEET for a pod of somebody else."""
    model = pod.labels.get(MODEL_LABEL)
    return ModelKey(pod.namespace, model) if model else FLEET


def _resource_version(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])
