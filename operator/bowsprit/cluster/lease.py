"""One acting operator at a time, by a Lease.

The official client brings the election; the lock under it is ours, because the client's own (37.0.2) cannot
create a Lease (its own validation refuses `pretty=True`) and gives up when the API server does not answer.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from bowsprit.cluster.client import Json, KubeClient
from bowsprit.cluster.errors import ClusterError, NotFound
from bowsprit.cluster.resources import LEASES

LEASE_S = 15
"""A leader that has not renewed for so long is taken for dead by the others."""
RENEW_DEADLINE_S = 10
"""A leader that could not renew for so long stops acting, well before the others start."""
RETRY_S = 2
TRY_S = RENEW_DEADLINE_S / 2
"""A request may take so long: one that gets no answer must leave time for another."""

_ABSENT = ApiException(status=404, body='{"code": 404}', reason="Not Found")


class _Lock(BaseLock):
    """The Lease as the election sees it. A failed request is a failed try."""

    def __init__(self, client: KubeClient, name: str, namespace: str, identity: str) -> None:
        super().__init__(name, namespace, identity)
        self._client = client
        self._seen: Json = {}
        self.lost = asyncio.Event()
        """Somebody else holds what was ours."""
        self._renewed: _Moment | None = None

    @property
    def fresh(self) -> bool:
        """Ours, and renewed so lately that nobody else can have taken over."""
        return self._renewed is not None and self._renewed.age_s() < RENEW_DEADLINE_S

    async def get(
        self, name: str, namespace: str
    ) -> tuple[bool, LeaderElectionRecord] | tuple[bool, ApiException]:
        try:
            async with asyncio.timeout(TRY_S):
                self._seen = await self._client.get(LEASES, namespace, name)
        except NotFound:
            # Somebody deleted it: whoever is the first to write a new one leads.
            self._renewed = None
            return False, _ABSENT
        except ClusterError as error:
            return False, ApiException(status=error.status, reason=error.message)
        except TimeoutError:
            return False, ApiException(status=0, reason=f"no answer within {TRY_S:g} s")
        spec = self._seen.get("spec") or {}
        if self._renewed is not None and spec.get("holderIdentity") != self.identity:
            self._renewed = None
            self.lost.set()
        if self.lost.is_set():
            return False, ApiException(status=409, reason="the Lease was lost: this process is at its end")
        duration = spec.get("leaseDurationSeconds")
        return True, LeaderElectionRecord(
            # A Lease that was handed back has an empty holder, and is anybody's at once.
            spec.get("holderIdentity") or None,
            None if duration is None else str(duration),
            spec.get("acquireTime"),
            spec.get("renewTime"),
        )

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        now = _now()
        spec = {**_spec(election_record), "acquireTime": now, "renewTime": now}
        lease = {**_HEAD, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
        return await self._renew(self._client.create(LEASES, namespace, lease))

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Writes on top of what `get` saw and nothing newer (resourceVersion)."""
        held = (self._seen.get("spec") or {}).get("holderIdentity")
        kept = held == updated_record.holder_identity
        spec = {**_spec(updated_record), "renewTime": _now()}
        if not kept:
            spec["acquireTime"] = spec["renewTime"]
        version = {"resourceVersion": self._seen["metadata"]["resourceVersion"]}
        return await self._renew(
            self._client.merge_patch(LEASES, namespace, name, {"metadata": version, "spec": spec})
        )

    async def _renew(self, request: Awaitable[Any]) -> bool:
        """The time counts from before the request: others may have seen it long before its answer is here."""
        asked = _Moment.now()
        done = await _done(request)
        if done:
            self._renewed = asked
        return done


class _Moment(NamedTuple):
    """By two clocks: the one that the machine's sleep stops, and the one that somebody may set back."""

    running: float
    wall: float

    @staticmethod
    def now() -> _Moment:
        return _Moment(time.monotonic(), time.time())

    def age_s(self) -> float:
        """By the clock that says more."""
        now = _Moment.now()
        return max(now.running - self.running, now.wall - self.wall)


_HEAD = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}


def _spec(record: LeaderElectionRecord) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder_identity,
        "leaseDurationSeconds": int(record.lease_duration or LEASE_S),
    }


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _done(request: Awaitable[Any]) -> bool:
    try:
        async with asyncio.timeout(TRY_S):
            await request
    except (ClusterError, TimeoutError):
        return False
    return True


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


class Leadership:
    """Campaigns for one Lease. `holds()` is asked before every write."""

    def __init__(self, client: KubeClient, name: str, namespace: str, identity: str) -> None:
        self._client = client
        self._name, self._namespace = name, namespace
        self._lock = _Lock(client, name, namespace, identity)

    async def campaign(
        self, started: Callable[[], Awaitable[None]], lost: Callable[[], Awaitable[None]]
    ) -> None:
        """Waits for the Lease, calls `started` and renews; calls `lost` and returns when renewing fails or
        somebody else is seen to hold the Lease.

        What this process knows is stale then, so it may not campaign again.
        """
        election = LeaderElection(Config(self._lock, LEASE_S, RENEW_DEADLINE_S, RETRY_S, started, None))
        ends = [asyncio.create_task(election.run()), asyncio.create_task(_wait(self._lock.lost))]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        for end in done:
            end.result()
        await lost()

    def holds(self) -> bool:
        """True while the last renewal is fresh enough that nobody else can have taken over."""
        return self._lock.fresh

    async def release(self) -> None:
        """Hands the Lease back, if it is ours, so that a waiting operator takes over within seconds."""
        if not self.holds():
            return
        patch = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        # When this fails, the Lease runs out by itself after LEASE_S.
        await _done(self._client.merge_patch(LEASES, self._namespace, self._name, patch))
