"""Carries out the steps of one model. Every write may fail, be repeated, or be the last before a kill.

The status goes first because it holds the promise: nothing is created or pinned that is not written down.
Errors are sorted here: what the API server refuses becomes a condition, everything else is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import structlog

from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import ClusterError, Conflict, NotFound, Refused
from bowsprit.cluster.resources import (
    CHILDREN,
    EVENTS,
    LEADER_WORKER_SETS,
    MODEL_DEPLOYMENTS,
    PODS,
    Resource,
    resource_of,
)
from bowsprit.controller.book import Book
from bowsprit.controller.children import Child, is_current, stamped
from bowsprit.controller.frame import Frame
from bowsprit.controller.steps import Deletion, Pin, Ranking, Steps
from bowsprit.inventory.pods import DELETION_COST
from bowsprit.plan.key import ModelKey
from bowsprit.render.labels import REVISION
from bowsprit.render.pinning import pin_patch
from bowsprit.status.events import EventNote, events_between
from bowsprit.status.observed import ApplyError

log = structlog.get_logger()

_RESOURCES = {resource.kind: resource for resource in (*CHILDREN, PODS)}
_INVALID = (400, 422)

STATUS_PAUSE_S = 1.0
"""How often the status of one model is written for what is neither a promise nor a turning point."""

ORPHANING = "orphan"
"""Finalizer of an object whose dependents are to lose it as their owner before it goes (metav1
FinalizerOrphanDependents)."""

_PROMISES = frozenset({"plan", "revisions"})
"""What the next operator has to find in the status."""


class NotLeading(Exception):
    """The Lease may not be ours: nothing may be written. It is renewed soon, or the process ends."""


class Writer:
    """Writes for all models, over one client; `leads` is asked before each write."""

    def __init__(
        self, client: KubeClient, book: Book, leads: Callable[[], bool], now: Callable[[], str]
    ) -> None:
        self._client = client
        self._book = book
        self._leads = leads
        self.now = now
        self._written: dict[str, str] = {}
        """uid of a child -> the content that our last apply left behind."""
        self._told: dict[ModelKey, float] = {}
        """When the status of a model was last written."""

    async def write(self, frame: Frame, status: Mapping[str, Any], steps: Steps) -> tuple[ApplyError, ...]:
        """Carries out all steps; returns what the API server refused. ClusterError: try again."""
        notes = events_between(frame.declared.status, status)
        patch = merge_patch(frame.declared.status, status)
        if notes or _PROMISES & patch.keys() or not self._put_off(frame.key, patch):
            await self._status(frame, patch)
        try:
            attempts = [await attempt for attempt in self._attempts(frame, steps)]
            return tuple(refusal for refusal in attempts if refusal is not None)
        finally:
            # Last: nobody waits for them.
            await self._events(frame, notes)

    async def tell(self, frame: Frame, status: Mapping[str, Any]) -> None:
        """Writes the status at once, and its turning points."""
        await self._status(frame, merge_patch(frame.declared.status, status))
        await self._events(frame, events_between(frame.declared.status, status))

    def _attempts(self, frame: Frame, steps: Steps) -> Iterator[Awaitable[ApplyError | None]]:
        """The writes, each to be awaited before the next is asked for."""
        # Before the workload is scaled down: its ReplicaSet must know by then which pods to take.
        for ranking in steps.rankings:
            yield _attempt(f"Pod/{ranking.pod.name}", self._rank(ranking))
        for eviction in steps.evictions:
            yield _attempt(eviction.target, self._delete(frame.key, eviction))
        for manifest in steps.manifests:
            yield self._apply(frame, stamped(manifest))
        for deletion in steps.deletions:
            yield _attempt(deletion.target, self._delete(frame.key, deletion))
        for pin in steps.pins:
            yield _attempt(f"Pod/{pin.pod.name}", self._pin(pin))

    async def sweep(self, key: ModelKey, children: Iterable[Child]) -> tuple[ApplyError, ...]:
        """Deletes what a deleted model has left: its GPUs are wanted at once, and the garbage collector takes
        its time. Returns what the API server refused.

        The API server is asked again, for the model and for each child: a cache that lags behind deletes
        nothing. So with `--cascade=orphan` the children stay.
        """
        owner = await self._keeping_owner(key)
        self._told.pop(key, None)
        there = {child.uid for cache in self._book.children.values() for child in cache}
        self._written = {uid: content for uid, content in self._written.items() if uid in there}
        left = [
            Deletion(child.kind, child.name, child.uid, owner=child.owner)
            for child in children
            if child.owner not in ("", owner) and not child.terminating
        ]
        attempts = [await _attempt(deletion.target, self._delete(key, deletion)) for deletion in left]
        return tuple(refusal for refusal in attempts if refusal is not None)

    async def _keeping_owner(self, key: ModelKey) -> str | None:
        """uid of the model that is there, or is being deleted without its children; None when neither is."""
        try:
            model = await self._client.get(MODEL_DEPLOYMENTS, key.namespace, key.name)
        except NotFound:
            return None
        meta = model["metadata"]
        goes = "deletionTimestamp" in meta and ORPHANING not in (meta.get("finalizers") or ())
        return None if goes else str(meta["uid"])

    def _put_off(self, key: ModelKey, patch: Mapping[str, Any]) -> bool:
        """What is neither a promise nor a turning point (so many pods are there, so many are bound) may be
        old news in a moment: it waits while the last write is fresh."""
        pause = self._told.get(key, -STATUS_PAUSE_S) + STATUS_PAUSE_S - asyncio.get_running_loop().time()
        if not patch or pause <= 0:
            return False
        self._book.queue.add_after(key, pause)
        return True

    async def _status(self, frame: Frame, patch: Mapping[str, Any]) -> None:
        if not patch:
            return
        key, now = frame.key, asyncio.get_running_loop().time()
        self._check()
        answer = await self._client.merge_patch(
            MODEL_DEPLOYMENTS,
            key.namespace,
            key.name,
            {"metadata": {"uid": frame.declared.uid}, "status": patch},
            "status",
        )
        self._told[key] = now
        self._book.status_written(answer)

    async def _apply(self, frame: Frame, manifest: Mapping[str, Any]) -> ApplyError | None:
        resource = resource_of(manifest)
        if resource is LEADER_WORKER_SETS and not self._book.lws_installed:
            return None
        name = manifest["metadata"]["name"]
        child = next(
            (child for child in frame.children if (child.kind, child.name) == (resource.kind, name)), None
        )
        if is_current(child, manifest, self._written.get(child.uid) if child else None):
            return None
        self._check()
        try:
            answer = await self._client.apply(resource, manifest)
        except Refused as error:
            return ApplyError(
                f"{resource.kind}/{name}",
                error.message,
                invalid=error.status in _INVALID,
                revision=(manifest["metadata"].get("labels") or {}).get(REVISION, ""),
            )
        cache = self._book.children[resource]
        cache.upsert(answer)
        written = self._book.child(resource, frame.key.namespace, name)
        if written is not None:
            self._written[written.uid] = written.content
        return None

    async def _rank(self, ranking: Ranking) -> None:
        self._check()
        pod = ranking.pod
        patch = {"metadata": {"annotations": {DELETION_COST: ranking.cost}}}
        self._book.pods.upsert(await self._client.merge_patch(PODS, pod.namespace, pod.name, patch))

    async def _delete(self, key: ModelKey, deletion: Deletion) -> None:
        resource: Resource = _RESOURCES[deletion.kind]
        if deletion.owner and not await self._still_owned(resource, key, deletion):
            return
        self._check()
        await self._client.delete(
            resource, key.namespace, deletion.name, uid=deletion.uid, grace_seconds=deletion.grace_seconds
        )
        self._written.pop(deletion.uid, None)

    async def _still_owned(self, resource: Resource, key: ModelKey, deletion: Deletion) -> bool:
        """The garbage collector may have orphaned it, and its watch lag behind the model's."""
        found = await self._client.get(resource, key.namespace, deletion.name)
        self._book.children[resource].upsert(found)
        child = self._book.child(resource, key.namespace, deletion.name)
        return child is not None and child.owner == deletion.owner

    async def _pin(self, pin: Pin) -> None:
        """Without an answer its GPUs stay reserved."""
        try:
            self._book.pods.upsert(await self._pinned(pin))
        except (NotFound, Refused):
            self._book.reservations.answered(pin)
            raise
        self._book.reservations.answered(pin)

    async def _pinned(self, pin: Pin) -> dict[str, Any]:
        """The pod as it is afterwards: pinned, or changed by somebody so that there is nothing to pin."""
        where = PODS, pin.pod.namespace, pin.pod.name
        pod = await self._client.get(*where)
        patch = _patch_of(pin, pod)
        if not patch:
            return pod
        self._check()
        self._book.reservations.send(pin)
        try:
            return await self._client.json_patch(*where, patch)
        except Refused:
            pod = await self._client.get(*where)
            if _patch_of(pin, pod) == patch:
                raise
            return pod

    async def _events(self, frame: Frame, notes: Iterable[EventNote]) -> None:
        for note in notes:
            await self._event(frame, note)

    async def _event(self, frame: Frame, note: EventNote) -> None:
        """Events are for people: a lost one is not worth a retry."""
        self._check()
        key, time = frame.key, self.now()
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{key.name}.", "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": MODEL_DEPLOYMENTS.api_version,
                "kind": MODEL_DEPLOYMENTS.kind,
                "name": key.name,
                "namespace": key.namespace,
                "uid": frame.declared.uid,
            },
            "type": note.type,
            "reason": note.reason,
            "message": note.message,
            "source": {"component": "bowsprit"},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        try:
            await self._client.create(EVENTS, key.namespace, event)
        except ClusterError as error:
            log.warning("event.lost", model=str(key), reason=note.reason, error=error.message)

    def _check(self) -> None:
        if not self._leads():
            raise NotLeading


async def _attempt(target: str, write: Awaitable[None]) -> ApplyError | None:
    """What the API server says against a deletion or a write to a pod: that is no fault of the spec's, and is
    tried again. Where somebody else was faster, the next event brings a new pass."""
    try:
        await write
    except (NotFound, Conflict):
        return None
    except Refused as error:
        return ApplyError(target, error.message)
    return None


def _patch_of(pin: Pin, pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Empty when another pod has taken the name, or the pod does not wait for us any more."""
    return pin_patch(pod, pin.node) if pod["metadata"]["uid"] == pin.pod.uid else []


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) from one mapping to another; empty when they are equal."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            inner = merge_patch(old, value)
            if inner:
                patch[key] = inner
        elif key not in before or old != value:
            patch[key] = value
    return patch
