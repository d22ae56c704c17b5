"""The nodes as the wishes at hand can tell them apart, and what is free on them.

Two nodes are of one kind when no wish could want one and refuse the other: the same resource and GPU type,
the same taints, and the same values of the labels that some wish selects by. Planning reckons with kinds,
so its cost hardly grows with the number of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bowsprit.plan.fleet import GpuNode, Taint, Toleration
from bowsprit.plan.wish import Accelerator


@dataclass(frozen=True, slots=True)
class Kind:
    number: int
    example: GpuNode
    """Any node of the kind: all that a wish can see of them is equal."""
    nodes: tuple[int, ...]
    """Positions in Ground.nodes."""
    memory_mib: int
    """The least of the nodes' GPUs."""
    linked: bool
    """True when it holds for all of the nodes."""
    largest: int
    """GPUs of the largest node."""


@dataclass(frozen=True, slots=True)
class Site:
    """The nodes of one GPU type that a wish may use: a replica stays within one site."""

    product: str
    kinds: tuple[int, ...]
    memory_mib: int
    """The least: a replica may span any of the nodes."""
    linked: bool
    largest: int
    total: int
    """GPUs, free or not."""


@dataclass(frozen=True, slots=True)
class Ground:
    nodes: tuple[GpuNode, ...]
    """By name."""
    kinds: tuple[Kind, ...]
    kind_of: tuple[int, ...]

    def sites(self, accelerator: Accelerator) -> tuple[Site, ...]:
        """The sites of a wish, by product name."""
        by_product: dict[str, list[Kind]] = {}
        for kind in self.kinds:
            if may_use(accelerator, kind.example):
                by_product.setdefault(kind.example.product, []).append(kind)
        return tuple(self._site(product, kinds) for product, kinds in sorted(by_product.items()))

    def _site(self, product: str, kinds: Sequence[Kind]) -> Site:
        return Site(
            product=product,
            kinds=tuple(kind.number for kind in kinds),
            memory_mib=min(kind.memory_mib for kind in kinds),
            linked=all(kind.linked for kind in kinds),
            largest=max(kind.largest for kind in kinds),
            total=sum(self.nodes[position].total for kind in kinds for position in kind.nodes),
        )


def survey(nodes: Iterable[GpuNode], accelerators: Iterable[Accelerator]) -> Ground:
    """Sort the nodes into kinds."""
    keys = sorted({key for accelerator in accelerators for key, _ in accelerator.node_selector})
    ordered = tuple(sorted(nodes, key=lambda node: node.name))
    members: dict[tuple[object, ...], list[int]] = {}
    for position, node in enumerate(ordered):
        seen = tuple(node.labels.get(key) for key in keys) if keys else ()
        members.setdefault((node.resource, node.product, node.taints, seen), []).append(position)
    kind_of = [0] * len(ordered)
    kinds = []
    for number, positions in enumerate(members.values()):
        kinds.append(_kind(number, [ordered[position] for position in positions], positions))
        for position in positions:
            kind_of[position] = number
    return Ground(ordered, tuple(kinds), tuple(kind_of))


def _kind(number: int, nodes: Sequence[GpuNode], positions: Sequence[int]) -> Kind:
    return Kind(
        number=number,
        example=nodes[0],
        nodes=tuple(positions),
        memory_mib=min(node.memory_mib for node in nodes),
        linked=all(node.linked for node in nodes),
        largest=max(node.total for node in nodes),
    )


def may_use(accelerator: Accelerator, node: GpuNode) -> bool:
    if node.resource != accelerator.resource:
        return False
    if accelerator.products and node.product not in accelerator.products:
        return False
    if any(node.labels.get(key) != value for key, value in accelerator.node_selector):
        return False
    return all(tolerated(taint, accelerator.tolerations) for taint in node.taints)


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """As kube-scheduler decides; a preference (PreferNoSchedule) forbids nothing."""
    return taint.effect == "PreferNoSchedule" or any(_matches(taint, each) for each in tolerations)


def _matches(taint: Taint, toleration: Toleration) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    if toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


class Stock:
    """Free GPUs by node position, counted by kind and size. What planning has given away is taken off."""

    def __init__(self, ground: Ground, free: Sequence[int]) -> None:
        self.ground = ground
        self.free = list(free)
        self._sizes: list[Counter[int]] = [Counter() for _ in ground.kinds]
        for kind, size in zip(ground.kind_of, self.free, strict=True):
            if size > 0:
                self._sizes[kind][size] += 1

    def sizes(self, kinds: Iterable[int]) -> Counter[int]:
        """How many nodes have how many GPUs free; nodes with none are left out."""
        total: Counter[int] = Counter()
        for kind in kinds:
            total.update(self._sizes[kind])
        return total

    def slots(self, kinds: Iterable[int], size: int) -> int:
        """How many pods of `size` GPUs fit, when there are no others."""
        return sum(free // size * count for free, count in self.sizes(kinds).items())

    def fresh(self, position: int) -> bool:
        """Whether the node is wholly free."""
        return self.free[position] == self.ground.nodes[position].total
