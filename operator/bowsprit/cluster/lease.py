"""One acting operator at a time, by a Lease.

The official client brings the election; here it is taught two things: an API server that does not answer is a
failed try and not the end of the election, and a graceful stop gives the Lease back at once.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import aiohttp
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import ClusterError
from bowsprit.cluster.resources import LEASES

LEASE_S = 15
"""A leader that has not renewed for so long is taken for dead by the others."""
RENEW_DEADLINE_S = 10
"""A leader that could not renew for so long stops acting, well before the others start."""
RETRY_S = 2


class _PatientLock(LeaseLock):
    """A LeaseLock whose network failures are failed tries."""

    async def get(self, name: str, namespace: str):
        try:
            return await super().get(name, namespace)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return False, ApiException(status=0, reason=str(error))

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        try:
            return bool(await super().create(name, namespace, election_record))
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        try:
            return bool(await super().update(name, namespace, updated_record))
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False


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

        async def on_started() -> None:
            await started()

        async def on_lost() -> None:
            await lost()

        lock = _PatientLock(self._name, self._namespace, self._identity, self._client.api)
        self._election = LeaderElection(Config(lock, LEASE_S, RENEW_DEADLINE_S, RETRY_S, on_started, on_lost))
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
        patch = {"spec": {"holderIdentity": None, "leaseDurationSeconds": 1}}
        try:
            await self._client.merge_patch(LEASES, self._namespace, self._name, patch)
        except ClusterError:
            return  # It runs out by itself after LEASE_S.
