"""Leadership: nobody acts on a Lease that somebody else may have by now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from bowsprit.cluster import lease as module
from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from bowsprit.cluster.lease import LEASE_S, RENEW_DEADLINE_S, Leadership

Json = dict[str, Any]


class Clocks:
    def __init__(self) -> None:
        self.running = self.wall = 1000.0

    def pass_(self, seconds: float) -> None:
        self.running += seconds
        self.wall += seconds


class LeaseServer(KubeClient):
    """One Lease, with the API server's rules for writing it."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.before_answer: Callable[[], None] = lambda: None
        self.error: ClusterError | None = None
        self.writes = 0

    async def get(self, *_: Any) -> Json:
        self._fail()
        if self.lease is None:
            raise NotFound("leases x not found", 404)
        return self.lease

    async def create(self, _: Any, __: Any, manifest: Any) -> Json:
        self._fail()
        if self.lease is not None:
            raise Conflict("exists", 409)
        return self._store(manifest["spec"], 1)

    async def merge_patch(self, _: Any, __: Any, ___: Any, patch: Any, subresource: Any = None) -> Json:
        self._fail()
        assert self.lease is not None
        version = self.lease["metadata"]["resourceVersion"]
        if patch.get("metadata", {}).get("resourceVersion", version) != version:
            raise Conflict("changed", 409)
        return self._store({**self.lease["spec"], **patch["spec"]}, int(version) + 1)

    def hold(self, identity: str) -> None:
        """Somebody else writes the Lease."""
        version = int(self.lease["metadata"]["resourceVersion"]) + 1 if self.lease else 1
        times = {"acquireTime": f"t{version}", "renewTime": f"t{version}"}
        self._store({"holderIdentity": identity, "leaseDurationSeconds": LEASE_S, **times}, version)

    def _fail(self) -> None:
        self.before_answer()
        if self.error is not None:
            raise self.error

    def _store(self, spec: Json, version: int) -> Json:
        self.writes += 1
        self.lease = {"metadata": {"resourceVersion": str(version)}, "spec": dict(spec)}
        return self.lease


class Campaign:
    """A leadership that campaigns until the test is over."""

    def __init__(self, server: LeaseServer) -> None:
        self.leadership = Leadership(server, "lease", "default", "me")
        self.started, self.lost = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self.leadership.campaign(self._start, self._lose))

    async def _start(self) -> None:
        self.started.set()

    async def _lose(self) -> None:
        self.lost.set()

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    moment = module._Moment
    monkeypatch.setattr(moment, "now", staticmethod(lambda: moment(clocks.running, clocks.wall)))
    return clocks


@pytest.mark.looptime
async def test_it_acts_from_the_moment_when_the_lease_is_its_own_until_it_is_not_renewed(
    clocks: Clocks,
) -> None:
    campaign = Campaign(LeaseServer())
    assert not campaign.leadership.holds()
    await campaign.started.wait()
    assert campaign.leadership.holds()
    clocks.pass_(RENEW_DEADLINE_S - 0.1)
    assert campaign.leadership.holds()
    clocks.pass_(0.2)
    assert not campaign.leadership.holds()
    await campaign.end()


@pytest.mark.looptime
async def test_the_time_counts_from_before_the_request_because_others_count_from_its_writing(
    clocks: Clocks,
) -> None:
    server = LeaseServer()
    server.before_answer = lambda: clocks.pass_(RENEW_DEADLINE_S)
    campaign = Campaign(server)
    await campaign.started.wait()
    assert not campaign.leadership.holds()
    await campaign.end()


CLOCK_FAULTS: dict[str, Callable[[Clocks], None]] = {
    "the machine slept": lambda clocks: setattr(clocks, "wall", clocks.wall + 60),
    "somebody set the clock back": lambda clocks: (
        setattr(clocks, "running", clocks.running + 60),
        setattr(clocks, "wall", clocks.wall - 3600),
    )[0],
}


@pytest.mark.looptime
@pytest.mark.parametrize("fault", CLOCK_FAULTS.values(), ids=CLOCK_FAULTS)
async def test_it_does_not_act_when(fault: Callable[[Clocks], None], clocks: Clocks) -> None:
    campaign = Campaign(LeaseServer())
    await campaign.started.wait()
    fault(clocks)
    assert not campaign.leadership.holds()
    await campaign.end()


@pytest.mark.looptime
async def test_another_name_in_the_lease_ends_the_campaign_at_the_next_look(clocks: Clocks) -> None:
    server = LeaseServer()
    campaign = Campaign(server)
    await campaign.started.wait()
    server.hold("other")
    await campaign.task
    assert campaign.lost.is_set()
    assert not campaign.leadership.holds()
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == "other"


@pytest.mark.looptime
async def test_it_never_takes_back_what_the_other_has_given_up_in_between(clocks: Clocks) -> None:
    server = LeaseServer()
    campaign = Campaign(server)
    await campaign.started.wait()
    server.hold("")
    writes = server.writes
    await campaign.task
    assert campaign.lost.is_set()
    assert server.writes == writes


@pytest.mark.looptime
async def test_a_lease_that_cannot_be_renewed_is_lost(clocks: Clocks) -> None:
    server = LeaseServer()
    campaign = Campaign(server)
    await campaign.started.wait()
    server.error = Unavailable("down")
    assert not campaign.lost.is_set()
    with pytest.MonkeyPatch.context() as patch:
        # The library's own clock; looptime does not touch it.
        loop = asyncio.get_running_loop()
        patch.setattr("kubernetes.aio.leaderelection.leaderelection.time.time", loop.time)
        await asyncio.wait_for(campaign.task, 60)
    assert campaign.lost.is_set()


@pytest.mark.looptime
@pytest.mark.parametrize("method", ["get", "merge_patch"])
async def test_a_request_without_an_answer_costs_one_try_and_not_the_lease(
    method: str, clocks: Clocks
) -> None:
    """A connection whose other end is gone, say: the next request takes another."""
    server = LeaseServer()
    campaign = Campaign(server)
    await campaign.started.wait()
    writes, answers = server.writes, getattr(server, method)

    async def silent(*_: Any) -> Json:
        setattr(server, method, answers)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody answers")

    setattr(server, method, silent)
    await asyncio.sleep(RENEW_DEADLINE_S - 0.1)
    assert server.writes > writes
    await campaign.end()


@pytest.mark.looptime
async def test_a_deleted_lease_is_nobodys_until_it_is_written_again(clocks: Clocks) -> None:
    server = LeaseServer()
    campaign = Campaign(server)
    await campaign.started.wait()
    server.lease, create = None, server.create
    server.create = _refuse  # type: ignore[method-assign]
    await asyncio.sleep(3)
    assert not campaign.leadership.holds()
    server.create = create  # type: ignore[method-assign]
    await asyncio.sleep(3)
    assert campaign.leadership.holds()
    assert not campaign.lost.is_set()
    await campaign.end()


@pytest.mark.looptime
async def test_a_lease_that_is_handed_back_is_taken_at_once(clocks: Clocks) -> None:
    server = LeaseServer()
    first = Campaign(server)
    await first.started.wait()
    await first.end()
    await first.leadership.release()
    second = Campaign(server)
    await asyncio.wait_for(second.started.wait(), 3)
    await second.end()


@pytest.mark.looptime
async def test_only_its_own_lease_is_handed_back(clocks: Clocks) -> None:
    server = LeaseServer()
    campaign = Campaign(server)
    await campaign.started.wait()
    server.hold("other")
    await campaign.task
    writes = server.writes
    await campaign.leadership.release()
    assert server.writes == writes


async def _refuse(*_: Any) -> Json:
    raise Unavailable("not now")
