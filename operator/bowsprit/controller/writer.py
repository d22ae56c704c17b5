"""Carries out the steps of one model. Every write may fail, be repeated, or be the last before a kill.

The status goes first because it holds the promise: nothing is created or pinned that is not written down.
Errors are sorted here: what the API server refuses becomes a condition, everything else is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import ClusterError, Conflict, NotFound, NotServed, Refused
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
from bowsprit.controller.steps import DELETION_COST, Deletion, Pin, Steps
from bowsprit.plan.key import ModelKey
from bowsprit.render.pinning import pin_patch
from bowsprit.status.events import EventNote, events_between
from bowsprit.status.observed import ApplyError

log = structlog.get_logger()

_RESOURCES = {resource.kind: resource for resource in (*CHILDREN, PODS)}
_INVALID = (400, 422)

STATUS_PAUSE_S = 1.0
"""How often the status of one model is written for what is neither a promise nor a turning point."""


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
        await self._status(frame, status, bool(notes))
        try:
            return await self._carry_out(frame, steps)
        finally:
            # Last: nobody waits for them.
            for note in notes:
                await self._event(frame, note)

    async def _carry_out(self, frame: Frame, steps: Steps) -> tuple[ApplyError, ...]:
        refused = []
        # Before the workload is scaled down: its ReplicaSet must know by then which pods to take.
        for pod in steps.demotions:
            await self._tolerate_absence(self._demote(frame.key, pod.name))
        for eviction in steps.evictions:
            await self._tolerate_absence(self._delete(frame.key, eviction))
        for manifest in steps.manifests:
            try:
                await self._apply(frame, stamped(manifest))
            except Refused as error:
                target = f"{manifest['kind']}/{manifest['metadata']['name']}"
                refused.append(ApplyError(target, error.message, invalid=error.status in _INVALID))
        for deletion in steps.deletions:
            await self._tolerate_absence(self._delete(frame.key, deletion))
        for pin in steps.pins:
            await self._tolerate_absence(self._pin(pin))
        return tuple(refused)

    async def sweep(self, key: ModelKey, children: Iterable[Child]) -> None:
        """Deletes what a deleted model has left: its GPUs are wanted at once, and the garbage collector takes
        its time.

        The API server is asked again, so a cache that lags behind deletes nothing. With `--cascade=orphan`
        the children have lost their owner before; orphans stay.
        """
        owner = await self._living_owner(key)
        self._told.pop(key, None)
        for child in children:
            if child.owner not in ("", owner) and not child.terminating:
                await self._tolerate_absence(self._delete(key, Deletion(child.kind, child.name, child.uid)))

    async def _living_owner(self, key: ModelKey) -> str | None:
        try:
            model = await self._client.get(MODEL_DEPLOYMENTS, key.namespace, key.name)
        except NotServed:
            raise
        except NotFound:
            return None
        gone = "deletionTimestamp" in model["metadata"]
        return None if gone else str(model["metadata"]["uid"])

    async def _status(self, frame: Frame, status: Mapping[str, Any], is_turning_point: bool) -> None:
        """Promises and turning points are written at once. The rest (so many pods are there, so many are
        bound) may be old news in a moment: it is put off while the last write is fresh."""
        patch = merge_patch(frame.declared.status, status)
        if not patch:
            return
        key, now = frame.key, asyncio.get_running_loop().time()
        pause = self._told.get(key, -STATUS_PAUSE_S) + STATUS_PAUSE_S - now
        if pause > 0 and not is_turning_point and not _PROMISES & patch.keys():
            self._book.queue.add_after(key, pause)
            return
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

    async def _apply(self, frame: Frame, manifest: Mapping[str, Any]) -> None:
        resource = resource_of(manifest)
        if resource is LEADER_WORKER_SETS and not self._book.lws_installed:
            return
        name = manifest["metadata"]["name"]
        child = next(
            (child for child in frame.children if (child.kind, child.name) == (resource.kind, name)), None
        )
        if is_current(child, manifest, self._written.get(child.uid) if child else None):
            return
        self._check()
        answer = await self._client.apply(resource, manifest)
        cache = self._book.children[resource]
        cache.upsert(answer)
        written = self._book.child(resource, frame.key.namespace, name)
        if written is not None:
            self._written[written.uid] = written.content

    async def _demote(self, key: ModelKey, pod: str) -> None:
        self._check()
        patch = {"metadata": {"annotations": {DELETION_COST: "-1000"}}}
        self._book.pods.upsert(await self._client.merge_patch(PODS, key.namespace, pod, patch))

    async def _delete(self, key: ModelKey, deletion: Deletion) -> None:
        self._check()
        resource: Resource = _RESOURCES[deletion.kind]
        grace = 0 if deletion.forced else None
        await self._client.delete(
            resource, key.namespace, deletion.name, uid=deletion.uid, grace_seconds=grace
        )
        self._written.pop(deletion.uid, None)

    async def _pin(self, pin: Pin) -> None:
        self._check()
        pod = await self._client.get(PODS, pin.pod.namespace, pin.pod.name)
        patch = pin_patch(pod, pin.node)
        if pod["metadata"]["uid"] == pin.pod.uid and patch:
            pod = await self._client.json_patch(PODS, pin.pod.namespace, pin.pod.name, patch)
        self._book.pods.upsert(pod)

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

    @staticmethod
    async def _tolerate_absence(write: Any) -> None:
        """Somebody else was faster: the next event brings a new pass."""
        try:
            await write
        except (NotFound, Conflict):
            return
        except Refused as error:
            if error.status != 422:
                raise


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
