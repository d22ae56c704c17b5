"""The nodes as the wishes at hand can tell them apart, and what is free on them.

Two nodes are of one kind when no wish could want one and refuse the other: the same resource and GPU type,
the same taints, the same values of the labels that some wish selects by, and room for the same pods. Planning
reckons with kinds, so its cost hardly grows with the number of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bowsprit.plan.fleet import GpuNode, Taint, Toleration
from bowsprit.plan.needs import Needs, lacking, largest
from bowsprit.plan.spare import GPUS, Amounts, Spare
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
    takes: frozenset[Needs] = frozenset()
    """Pods of which the nodes could take at least one now."""
    crowded: frozenset[Needs] = frozenset()
    """Pods that the nodes could take if others made room."""


@dataclass(frozen=True, slots=True)
class Site:
    """The nodes of one GPU type that a wish may use: a replica stays within one site."""

    product: str
    kinds: tuple[int, ...]
    """Without `crowded`."""
    crowded: tuple[int, ...]
    """Kinds whose nodes have no room now for what a pod needs beside GPUs."""
    memory_mib: int
    """The least: a replica may span any of the nodes."""
    linked: bool
    largest: int
    total: int
    """GPUs, free or not."""
    capability: int | None
    """Compute capability times ten; None when some node does not say."""


@dataclass(frozen=True, slots=True)
class Ground:
    nodes: tuple[GpuNode, ...]
    """By name."""
    kinds: tuple[Kind, ...]
    kind_of: tuple[int, ...]

    def sites(self, accelerator: Accelerator, needs: Needs = ()) -> tuple[Site, ...]:
        """The sites of a wish, by product name."""
        by_product: dict[str, list[Kind]] = {}
        for kind in self.kinds:
            if may_use(accelerator, kind.example) and needs in (kind.takes | kind.crowded):
                by_product.setdefault(kind.example.product, []).append(kind)
        return tuple(self._site(product, kinds, needs) for product, kinds in sorted(by_product.items()))

    def _site(self, product: str, kinds: Sequence[Kind], needs: Needs) -> Site:
        known = {kind.example.capability for kind in kinds}
        return Site(
            product=product,
            kinds=tuple(kind.number for kind in kinds if needs in kind.takes),
            crowded=tuple(kind.number for kind in kinds if needs in kind.crowded),
            memory_mib=min(kind.memory_mib for kind in kinds),
            linked=all(kind.linked for kind in kinds),
            largest=max(kind.largest for kind in kinds),
            total=sum(self.nodes[position].total for kind in kinds for position in kind.nodes),
            capability=None if None in known else max(filter(None, known), default=None),
        )


def survey(
    nodes: Iterable[GpuNode],
    accelerators: Sequence[Accelerator],
    pods: Sequence[Needs] = ((),),
    spare: Amounts | None = None,
) -> Ground:
    """Sort the nodes into kinds. `pods` are what is to be placed, `spare` what is there for it."""
    keys = sorted({key for accelerator in accelerators for key, _ in accelerator.node_selector})
    by_machine = any(accelerator.architectures for accelerator in accelerators)
    ordered = tuple(sorted(nodes, key=lambda node: node.name))
    amounts = Spare(ordered) if spare is None else spare
    room_of = _Room(pods, amounts)
    members: dict[tuple[object, ...], list[int]] = {}
    rooms: list[Room] = []
    for position, node in enumerate(ordered):
        seen = tuple(node.labels.get(key) for key in keys) if keys else ()
        room = room_of(node)
        machine = node.architecture if by_machine else ""
        key = (node.resource, node.product, node.capability, node.taints, seen, machine, room)
        if key not in members:
            rooms.append(room)
        members.setdefault(key, []).append(position)
    kind_of = [0] * len(ordered)
    kinds = []
    for number, (positions, room) in enumerate(zip(members.values(), rooms, strict=True)):
        kinds.append(_kind(number, [ordered[position] for position in positions], positions, room))
        for position in positions:
            kind_of[position] = number
    return Ground(ordered, tuple(kinds), tuple(kind_of))


Room = tuple[frozenset[Needs], frozenset[Needs]]
"""Pods that a node takes now, and those that it could take if others made room."""


class _Room:
    """Which pods a node has room for."""

    def __init__(self, pods: Sequence[Needs], spare: Amounts) -> None:
        self._pods = pods
        self._spare = spare
        self._all: Room = (frozenset(pods), frozenset())
        self._largest = largest(pods)

    def __call__(self, node: GpuNode) -> Room:
        if not self._largest or self._has_room(node, self._largest):
            return self._all
        takes = frozenset(needs for needs in self._pods if self._has_room(node, needs))
        could = frozenset(needs for needs in self._pods if not lacking(node.offers, needs))
        return takes, could - takes

    def _has_room(self, node: GpuNode, needs: Needs) -> bool:
        return all(self._spare[node.name, resource] >= amount for resource, amount in needs)


def _kind(number: int, nodes: Sequence[GpuNode], positions: Sequence[int], room: Room) -> Kind:
    return Kind(
        number=number,
        example=nodes[0],
        nodes=tuple(positions),
        memory_mib=min(node.memory_mib for node in nodes),
        linked=all(node.linked for node in nodes),
        largest=max(node.total for node in nodes),
        takes=room[0],
        crowded=room[1],
    )


def may_use(accelerator: Accelerator, node: GpuNode) -> bool:
    if node.resource != accelerator.resource:
        return False
    if accelerator.products and node.product not in accelerator.products:
        return False
    if accelerator.architectures and node.architecture not in accelerator.architectures:
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
    """What is free at one instant, by node position; GPUs are counted by kind and size. What planning has
    given away is taken off."""

    def __init__(self, ground: Ground, spare: Amounts) -> None:
        self.ground = ground
        free = [spare[node.name, GPUS] for node in ground.nodes]
        self.free = [max(0, gpus) for gpus in free]
        self._spare = spare
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

    def left(self, position: int, resource: str) -> int:
        """What there is of something else than GPUs."""
        return self._spare[self.ground.nodes[position].name, resource]

    def fresh(self, position: int) -> bool:
        """Whether the node is wholly free."""
        return self.free[position] == self.ground.nodes[position].total
