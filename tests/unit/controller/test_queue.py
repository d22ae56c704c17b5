"""The work queue: many events, one pass; failures come back later and later."""

from __future__ import annotations

import asyncio

import looptime
import pytest

from bowsprit.controller.queue import BACKOFF_MAX_S, BACKOFF_START_S, WorkQueue

pytestmark = pytest.mark.looptime

SETTLE_S = 0.5


@pytest.fixture
async def queue() -> WorkQueue[str]:
    return WorkQueue(SETTLE_S)


async def test_a_key_that_is_added_many_times_is_taken_once(queue: WorkQueue[str]) -> None:
    for _ in range(5):
        queue.add("a")
    assert len(queue) == 1
    assert await queue.take() == {"a"}
    assert len(queue) == 0


async def test_what_arrives_while_the_queue_settles_is_in_the_same_batch(queue: WorkQueue[str]) -> None:
    loop = asyncio.get_running_loop()
    queue.add("a")
    loop.call_later(SETTLE_S / 2, queue.add, "b")
    loop.call_later(SETTLE_S * 2, queue.add, "c")
    assert await queue.take() == {"a", "b"}
    assert await queue.take() == {"c"}


async def test_taking_waits_for_the_first_key(
    queue: WorkQueue[str], looptime: looptime.LoopTimeProxy
) -> None:
    asyncio.get_running_loop().call_later(100, queue.add, "a")
    assert await queue.take() == {"a"}
    assert looptime == pytest.approx(100 + SETTLE_S)


async def test_a_delayed_key_comes_when_its_time_has_come(
    queue: WorkQueue[str], looptime: looptime.LoopTimeProxy
) -> None:
    queue.add_after("later", 60)
    queue.add_after("sooner", 10)
    assert (len(queue), queue.delayed) == (0, 2)
    assert await queue.take() == {"sooner"}
    assert looptime == pytest.approx(10 + SETTLE_S)
    assert await queue.take() == {"later"}
    assert looptime == pytest.approx(60 + SETTLE_S)


async def test_a_delay_does_not_hold_up_what_is_due_now(
    queue: WorkQueue[str], looptime: looptime.LoopTimeProxy
) -> None:
    queue.add_after("a", 60)
    queue.add("a")
    assert await queue.take() == {"a"}
    assert looptime == pytest.approx(SETTLE_S)
    assert await queue.take() == {"a"}
    assert looptime == pytest.approx(60 + SETTLE_S)


async def test_a_sooner_delay_that_is_added_while_a_later_one_is_waited_for_is_not_late(
    queue: WorkQueue[str], looptime: looptime.LoopTimeProxy
) -> None:
    queue.add_after("late", 600)
    asyncio.get_running_loop().call_later(5, queue.add_after, "early", 10)
    assert await queue.take() == {"early"}
    assert looptime == pytest.approx(15 + SETTLE_S)


async def test_the_pause_doubles_with_each_failure_up_to_a_limit(queue: WorkQueue[str]) -> None:
    pauses = [queue.retry("a") for _ in range(12)]
    for number, pause in enumerate(pauses):
        nominal = min(BACKOFF_START_S * 2.0**number, BACKOFF_MAX_S)
        assert 0.8 * nominal <= pause <= 1.2 * nominal


async def test_success_forgets_the_failures_of_its_key_only(queue: WorkQueue[str]) -> None:
    for key in ("a", "a", "a", "b", "b", "b"):
        queue.retry(key)
    queue.succeeded("a")
    assert queue.retry("a") <= BACKOFF_START_S * 1.2
    assert queue.retry("b") >= BACKOFF_START_S * 8 * 0.8


async def test_more_is_taken_without_waiting(queue: WorkQueue[str], looptime: looptime.LoopTimeProxy) -> None:
    assert queue.take_more() == set()
    queue.add("a")
    queue.add_after("b", 10)
    assert queue.take_more() == {"a"}
    await asyncio.sleep(11)
    assert queue.take_more() == {"b"}
    assert queue.take_more() == set()
    assert looptime == pytest.approx(11)


async def test_a_delay_of_a_key_that_comes_sooner_anyway_adds_nothing(
    queue: WorkQueue[str], looptime: looptime.LoopTimeProxy
) -> None:
    for delay in (10, 30, 20):
        queue.add_after("a", delay)
    assert queue.delayed == 1
    assert await queue.take() == {"a"}
    assert looptime == pytest.approx(10 + SETTLE_S)
    queue.add_after("a", 5)
    assert await queue.take() == {"a"}
    assert looptime == pytest.approx(15 + 2 * SETTLE_S)
