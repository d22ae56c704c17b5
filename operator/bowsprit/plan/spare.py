"""What nobody stands on or was promised, node by node, while a plan is made: GPUs, and what else pods need.

GPUs are one thing among others here, so that whatever gives back or takes up a replica does it for all at
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from bowsprit.plan.fleet import GpuNode
from bowsprit.plan.needs import Needs, left
from bowsprit.plan.result import ReplicaPlan

GPUS = "GPUs"

Thing = tuple[str, str]
"""(node, GPUS or a resource)."""
Load = Mapping[Thing, int]


class Amounts(Protocol):
    """Anything that says how much there is of each thing."""

    def __getitem__(self, thing: Thing, /) -> int: ...


class Spare(dict[Thing, int]):
    """Starts as the nodes say; what is taken is taken off. A node that is not there has nothing."""

    def __init__(self, nodes: Iterable[GpuNode]) -> None:
        self._nodes = {node.name: node for node in nodes}
        super().__init__({(name, GPUS): node.free for name, node in self._nodes.items()})

    def __missing__(self, thing: Thing) -> int:
        node = self._nodes.get(thing[0])
        return 0 if node is None or thing[1] == GPUS else left(node.room, thing[1])


def plus(spare: Spare, more: Load) -> Amounts:
    """`spare`, and what comes on top or is taken off (`more`), without changing it."""
    return _Sum(spare, more) if more else spare


class _Sum:
    def __init__(self, spare: Spare, more: Load) -> None:
        self._spare = spare
        self._more = more

    def __getitem__(self, thing: Thing) -> int:
        return self._spare[thing] + self._more.get(thing, 0)


def load_of(replicas: Iterable[ReplicaPlan], needs: Needs | None = None) -> dict[Thing, int]:
    """What replicas take; every pod what it says itself, or all of them `needs`. On CPUs none takes a GPU."""
    load: dict[Thing, int] = {}
    for replica in replicas:
        for pod in replica.pods:
            gpus = 0 if replica.layout.on_cpus else pod.gpus
            for what, amount in ((GPUS, gpus), *(pod.needs if needs is None else needs)):
                load[pod.node, what] = load.get((pod.node, what), 0) + amount
    return load


def together(one: Load, other: Load) -> dict[Thing, int]:
    """Both loads."""
    return {thing: one.get(thing, 0) + other.get(thing, 0) for thing in {**one, **other}}
