"""One acting operator at a time, by a Lease.

The official client brings the election; the lock under it is ours, because the client's own (37.0.2) cannot
create a Lease (its own validation refuses `pretty=True`) and gives up when the API server does not answer.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Awaitable, Callable
from typing import Any

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

_ABSENT = ApiException(status=404, body='{"code": 404}', reason="Not Found")


class _Lock(BaseLock):
    """The Lease as the election sees it. A failed request is a failed try."""

    def __init__(self, client: KubeClient, name: str, namespace: str, identity: str) -> None:
        super().__init__(name, namespace, identity)
        self._client = client
        self._seen: Json = {}

    async def get(
        self, name: str, namespace: str
    ) -> tuple[bool, LeaderElectionRecord] | tuple[bool, ApiException]:
        try:
            self._seen = await self._client.get(LEASES, namespace, name)
        except NotFound:
            return False, _ABSENT
        except ClusterError as error:
            return False, ApiException(status=error.status, reason=error.message)
        spec = self._seen.get("spec") or {}
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
        return await _done(self._client.create(LEASES, namespace, lease))

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Writes on top of what `get` saw and nothing newer (resourceVersion)."""
        held = (self._seen.get("spec") or {}).get("holderIdentity")
        kept = held == updated_record.holder_identity
        spec = {**_spec(updated_record), "renewTime": _now()}
        if not kept:
            spec["acquireTime"] = spec["renewTime"]
        version = {"resourceVersion": self._seen["metadata"]["resourceVersion"]}
        return await _done(
            self._client.merge_patch(LEASES, namespace, name, {"metadata": version, "spec": spec})
        )


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
        await request
    except ClusterError:
        return False
    return True


class Leadership:
    """Campaigns for one Lease. `holds()` is asked before every write."""

    def __init__(self, client: KubeClient, name: str, namespace: str, identity: str) -> None:
        self._client = client
        self._name, self._namespace, self._identity = name, namespace, identity
        self._election: LeaderElection | None = None

    async def campaign(
        self, started: Callable[[], Awaitable[None]], lost: Callable[[], Awaitable[None]]
    ) -> None:
        """Waits for the Lease, calls `started` and renews; calls `lost` and returns when renewing fails."""
        lock = _Lock(self._client, self._name, self._namespace, self._identity)
        self._election = LeaderElection(Config(lock, LEASE_S, RENEW_DEADLINE_S, RETRY_S, started, lost))
        await self._election.run()

    def holds(self) -> bool:
        """True while the last renewal is fresh enough that nobody else can have taken over."""
        election = self._election
        if election is None or election.observed_record is None:
            return False
        age_s = time.time() - election.observed_time_milliseconds / 1000
        return election.observed_record.holder_identity == self._identity and age_s < RENEW_DEADLINE_S

    async def release(self) -> None:
        """Hands the Lease back, if it is ours, so that a waiting operator takes over within seconds."""
        if not self.holds():
            return
        patch = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        # When this fails, the Lease runs out by itself after LEASE_S.
        await _done(self._client.merge_patch(LEASES, self._namespace, self._name, patch))
