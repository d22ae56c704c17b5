"""What admission has made of a model's pods: they may ask for more than was rendered.

A mutating webhook adds a container, a RuntimeClass its overhead, a LimitRange what a container does not say.
Pods that wait for their node show it, and the model is planned with what they ask for. Where no node has room
for them their workload goes, and so do they; what they showed is believed for a while, because a plan with
what was rendered would find the same node again, and again no room there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bowsprit.controller.frame import Frame
from bowsprit.controller.groups import beside, placed
from bowsprit.inventory.pods import PodView
from bowsprit.plan.key import ModelKey
from bowsprit.plan.needs import Needs, largest
from bowsprit.plan.result import Layout
from bowsprit.plan.wish import Wish
from bowsprit.status.growth import Growth, More

BELIEVED_S = 300.0
"""How long after its last pod. Then one more plan with what was rendered finds out whether it is still so."""


class _Seen(NamedTuple):
    revision: str
    needs: Needs
    """The most that any of its pods asked for."""
    growth: Growth
    until: float


@dataclass(slots=True)
class Admitted:
    """What this process has seen. Losing it on a restart costs one more try, nothing else."""

    seen: dict[ModelKey, _Seen] = field(default_factory=dict)

    def meet(self, frame: Frame, wish: Wish, now: float) -> Wish:
        """The wish with what the model's pods really ask for."""
        waiting = tuple(_waiting(frame))
        if waiting:
            self._note(frame, wish, waiting, now)
        seen = self._of(frame)
        return replace(wish, needs=largest([wish.needs, seen.needs])) if seen else wish

    def told(self, frame: Frame) -> Growth | None:
        """A pod that shows it, of the planned revision."""
        seen = self._of(frame)
        return seen.growth if seen else None

    def forget(self, key: ModelKey) -> None:
        self.seen.pop(key, None)

    def forget_old(self, now: float) -> set[ModelKey]:
        """The models of which something was believed for long enough: they are to be planned anew."""
        over = {key for key, seen in self.seen.items() if seen.until <= now}
        for key in over:
            del self.seen[key]
        return over

    def next_wake(self, now: float) -> float | None:
        """Seconds until something has been believed for long enough; None when nothing is."""
        ends = [seen.until for seen in self.seen.values()]
        return max(0.0, min(ends) - now) if ends else None

    def _of(self, frame: Frame) -> _Seen | None:
        seen = self.seen.get(frame.key)
        return seen if seen and frame.target and seen.revision == frame.target.hash else None

    def _note(self, frame: Frame, wish: Wish, waiting: Sequence[tuple[PodView, Layout]], now: float) -> None:
        assert frame.target is not None, "without a target no pod waits for it"
        grown = [
            Growth(pod.name, more) for pod, layout in waiting if (more := tuple(_more(pod, layout, wish)))
        ]
        if not grown:
            self.forget(frame.key)
            return
        needs = largest(beside(pod, layout) for pod, layout in waiting)
        example = min(grown, key=lambda growth: growth.pod)
        self.seen[frame.key] = _Seen(frame.target.hash, needs, example, now + BELIEVED_S)


def _waiting(frame: Frame) -> Iterator[tuple[PodView, Layout]]:
    """Pods of the target revision that wait for a node; on CPUs they do not wait for us."""
    for group in frame.groups:
        if frame.target is None or group.workload.revision != frame.target.hash or group.layout.on_cpus:
            continue
        for pod in group.pods:
            if not placed(pod) and not pod.terminating and not pod.finished:
                yield pod, group.layout


def _more(pod: PodView, layout: Layout, wish: Wish) -> Iterator[More]:
    """What a pod asks for beyond what was rendered."""
    rendered = {wish.accelerator.resource: layout.gpus_per_pod, **dict(wish.needs)}
    for resource, amount in beside(pod, layout):
        if amount > rendered.get(resource, 0):
            yield More(resource, amount, rendered.get(resource, 0))
