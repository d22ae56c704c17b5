"""How long a group that goes on dying waits before it gets its GPUs again.

LeaderWorkerSet starts a group that has lost a rank with new pods, and the kubelet's own back-off counts the
restarts of one pod: without this, a group that cannot live would be started in a loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bowsprit.controller.groups import GroupId

START_S = 10.0
MAX_S = 300.0
"""As the kubelet's for containers; the first start anew is at once, as there."""
FORGIVEN_S = 600.0
"""A group that has lived so long starts again at once."""


@dataclass(slots=True)
class Backoff:
    """What this process has seen die. Losing it on a restart costs one more try, nothing else."""

    groups: dict[GroupId, tuple[int, float]] = field(default_factory=dict)
    """Group -> (deaths in a row, when it may start again)."""

    def died(self, group: GroupId, now: float) -> tuple[int, float]:
        """Counts a death; returns how many there were in a row, and the pause in seconds before the next
        start."""
        count, until = self.groups.get(group, (0, now))
        if now - until > FORGIVEN_S:
            count = 0
        pause = min(START_S * 2.0 ** (count - 1), MAX_S) if count else 0.0
        self.groups[group] = (count + 1, now + pause)
        return count + 1, pause

    def paused(self, now: float) -> frozenset[GroupId]:
        """Groups that must not start yet."""
        return frozenset(group for group, (_, until) in self.groups.items() if until > now)

    def ends(self, now: float) -> Iterable[float]:
        """When the pauses that run are over."""
        return (until for _, until in self.groups.values() if until > now)

    def forget(self, now: float) -> None:
        """Drops what is forgiven."""
        self.groups = {
            group: deaths for group, deaths in self.groups.items() if now - deaths[1] <= FORGIVEN_S
        }
