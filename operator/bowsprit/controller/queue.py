"""The work queue between events and planning: many events, one pass.

Events only add keys. Adding a key twice is adding it once; keys that fail come back with growing pauses; and
because one plan covers all models, everything that is due is taken in one batch after a short settling time.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

BACKOFF_START_S = 0.5
BACKOFF_MAX_S = 60.0


class WorkQueue(Generic[Key]):
    """Keys to work on. One consumer; times are the event loop's."""

    def __init__(self, settle_s: float = 0.05) -> None:
        self._settle_s = settle_s
        self._due: set[Key] = set()
        self._later: list[tuple[float, int, Key]] = []
        self._soonest: dict[Key, float] = {}
        """When each delayed key comes next."""
        self._serial = 0
        self._failures: dict[Key, int] = {}
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        """Keys that wait to be taken, those with a pause not counted."""
        return len(self._due)

    @property
    def delayed(self) -> int:
        return len(self._later)

    def add(self, key: Key) -> None:
        self._due.add(key)
        self._arrived.set()

    def add_after(self, key: Key, delay_s: float) -> None:
        """Adds the key when `delay_s` have passed, unless it comes sooner anyway; `add` cancels nothing."""
        due = asyncio.get_running_loop().time() + delay_s
        if self._soonest.get(key, due + 1) <= due:
            return
        self._soonest[key] = due
        self._serial += 1
        heapq.heappush(self._later, (due, self._serial, key))
        self._arrived.set()

    def retry(self, key: Key) -> float:
        """Adds a key that failed, after a pause that doubles each time; returns the pause in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = min(BACKOFF_START_S * 2.0**failures, BACKOFF_MAX_S) * random.uniform(0.8, 1.2)
        self.add_after(key, pause)
        return pause

    def succeeded(self, key: Key) -> None:
        """Forgets the key's failures."""
        self._failures.pop(key, None)

    async def take(self) -> set[Key]:
        """Waits until something is due, lets more arrive for the settling time, and takes all of it."""
        while True:
            self._promote()
            if self._due:
                await asyncio.sleep(self._settle_s)
                return self.take_more()
            self._arrived.clear()
            await self._wait()

    def take_more(self) -> set[Key]:
        """What has become due since the last `take`, without waiting."""
        self._promote()
        batch, self._due = self._due, set()
        return batch

    def _promote(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._soonest.get(key) == due:
                del self._soonest[key]
            self._due.add(key)

    async def _wait(self) -> None:
        pause = None
        if self._later:
            pause = max(0.0, self._later[0][0] - asyncio.get_running_loop().time())
        try:
            await asyncio.wait_for(self._arrived.wait(), pause)
        except TimeoutError:
            return
