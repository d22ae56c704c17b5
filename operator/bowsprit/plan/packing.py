"""Which nodes: placing chosen replicas one by one, each where it does least harm.

Larger pods go first, so that a choice that keeps the counting rows of arbitration always finds room. A
replica goes on one node when one has room, on a node that is in use already rather than on a fresh one, and
there where the least is left over; else over the fewest nodes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from bowsprit.plan.arbitration import Choice, Peers
from bowsprit.plan.ask import Ask, Option, Placement
from bowsprit.plan.ground import Stock
from bowsprit.plan.needs import PLENTY, Needs

Part = tuple[tuple[int, ...], int]
"""Kinds of nodes, and how many GPUs of a replica go to any of them."""


@dataclass(frozen=True, slots=True)
class Item:
    """A replica to place."""

    ask: Ask
    option: Option
    parts: tuple[Part, ...]
    """All of it on any kind of its site, or a share of each kind (overlap.py)."""


def anywhere(option: Option) -> tuple[Part, ...]:
    """The whole replica on any nodes of its site."""
    return ((option.site.kinds, option.cut.gpus),)


Packed = list[tuple[Ask, Placement]]


def items(groups: Sequence[Peers], choice: Choice) -> list[Item]:
    """The chosen replicas, shared out within each group: one for each model first, the older first."""
    answer: list[Item] = []
    for group, counts in zip(groups, choice, strict=True):
        options = [
            option for option, count in zip(group.example.options, counts, strict=True) for _ in range(count)
        ]
        answer.extend(
            Item(ask, option, anywhere(option)) for ask, option in zip(turns(group), options, strict=False)
        )
    return answer


def turns(group: Peers) -> list[Ask]:
    """Who gets the next replica of the group, in order."""
    first = list(group.asks)
    rest = [ask for ask in group.asks for _ in range(ask.missing - 1)]
    return first + rest


def pack(chosen: Iterable[Item], stock: Stock) -> Packed | None:
    """Places for all items, or None when some item found none."""
    order = sorted(
        chosen, key=lambda item: (-item.option.cut.pod_gpus, -item.option.cut.gpus, item.ask.order)
    )
    shelves = Shelves(stock, (item.option for item in order))
    packed = []
    for item in order:
        placement = shelves.place(item.option, item.parts)
        if placement is None:
            return None
        packed.append((item.ask, placement))
    return packed


def pack_in_turn(asks: Iterable[Ask], stock: Stock) -> Packed:
    """What fits when models choose one after the other, a first replica for each before any second.

    Only for what counting cannot decide: pod sizes that do not divide each other, and problems too large for
    overlap.py. Valid always, not always the best.
    """
    ordered = sorted(asks, key=lambda ask: ask.order)
    shelves = Shelves(stock, (option for ask in ordered for option in ask.options))
    packed: Packed = []
    for priority in sorted({ask.priority for ask in ordered}, reverse=True):
        same = [ask for ask in ordered if ask.priority == priority]
        firsts = [ask for ask in same if not ask.has_one]
        rest = [ask for ask in same for _ in range(ask.missing - (0 if ask.has_one else 1))]
        for ask in firsts + rest:
            for option in ask.options:
                placement = shelves.place(option, anywhere(option))
                if placement is not None:
                    packed.append((ask, placement))
                    break
    return packed


Shelf = tuple[int, bool, frozenset[Needs]]
"""Kind of nodes, whether they are fresh, and pods that are known not to fit there any more."""
Found = tuple[Shelf, int, int]
"""A shelf, the free GPUs and the position of the first node of that size on it."""


class Shelves:
    """Nodes by kind, by whether they are in use, and by free GPUs; each shelf in the order of names.

    Of the nodes that will do, those go first that the fewest sets of nodes include: others may need the rest.
    A node that turns out to have no room for what a pod needs beside GPUs goes to a shelf that says so.
    """

    def __init__(self, stock: Stock, options: Iterable[Option]) -> None:
        self._stock = stock
        self._free = list(stock.free)
        self._taken: dict[tuple[int, str], int] = {}
        """What the placements so far need beside GPUs, by node position."""
        self._kind_of = stock.ground.kind_of
        asked = {(option.site.kinds, option.needs) for option in options}
        self._wanted = Counter(kind for zone in {zone for zone, _ in asked} for kind in zone)
        self._no_less = _no_less({needs for _, needs in asked})
        self._shelves: dict[Shelf, dict[int, list[int]]] = {}
        self._sizes: dict[Shelf, list[int]] = {}
        self._of_kind: dict[int, list[Shelf]] = {}
        for position, size in enumerate(self._free):
            if size > 0:
                shelf = (self._kind_of[position], stock.fresh(position), _NOTHING_KNOWN)
                self._shelves.setdefault(shelf, {}).setdefault(size, []).append(position)
        for shelf, by_size in self._shelves.items():
            self._of_kind.setdefault(shelf[0], []).append(shelf)
            self._sizes[shelf] = sorted(by_size)
            for heap in by_size.values():
                heapify(heap)

    def place(self, option: Option, parts: Iterable[Part]) -> Placement | None:
        """Take the replica's GPUs off the shelves; None, and nothing is taken, when they are not there.

        First as it serves best. Where the nodes lack room for so many pods, then in pods of one size after
        the other, the largest first, with no more pods on a node than it has room for.
        """
        shares = list(parts)
        placement = self._gather(option, shares, option.cut.pod_gpus, option.cut.pods)
        if placement is not None or not option.needs:
            return placement
        for pod in _pod_sizes(option, shares):
            placement = self._gather(option, shares, pod, None)
            if placement is not None:
                return placement
        return None

    def _gather(self, option: Option, parts: Sequence[Part], pod: int, most: int | None) -> Placement | None:
        """A place in multiples of `pod` GPUs; `most` pods on a node, or as many as it has room for."""
        taken: list[tuple[int, int]] = []
        came_from: list[Found] = []
        for kinds, gpus in parts:
            rest = gpus
            while rest:
                found = self._tightest(kinds, rest, option.needs) or self._roomiest(kinds, pod, option.needs)
                if found is None:
                    self._put_back(came_from)
                    return None
                shelf, size, position = found
                self._take(shelf, size)
                came_from.append(found)
                pods = min(rest, size) // pod
                used = pod * min(pods, self._pods_that_fit(position, option.needs) if most is None else most)
                taken.append((position, used))
                rest -= used
        placement = Placement(option, tuple(sorted(taken, key=lambda node: (-node[1], node[0]))))
        if not self._has_room(placement):
            self._put_back(came_from)
            return None
        self._settle(placement, came_from)
        return placement

    def _settle(self, placement: Placement, came_from: Iterable[Found]) -> None:
        used = dict(placement.nodes)
        for (kind, _, barred), size, position in came_from:
            self._put((kind, False, barred), size - used[position], position)
        for position, gpus in placement.nodes:
            for resource, amount in placement.option.needs:
                thing = (position, resource)
                self._taken[thing] = self._taken.get(thing, 0) + gpus // placement.pod_gpus * amount

    def _put_back(self, came_from: Iterable[Found]) -> None:
        for shelf, size, position in came_from:
            self._put(shelf, size, position)

    def _has_room(self, placement: Placement) -> bool:
        needs = placement.option.needs
        return not needs or all(
            gpus // placement.pod_gpus <= self._pods_that_fit(position, needs)
            for position, gpus in placement.nodes
        )

    def _pods_that_fit(self, position: int, needs: Needs) -> int:
        """As far as what they need beside GPUs goes."""
        rooms = (
            (self._stock.left(position, resource) - self._taken.get((position, resource), 0)) // amount
            for resource, amount in needs
        )
        return max(0, min(rooms, default=PLENTY))

    def _candidates(self, kinds: Iterable[int], needs: Needs) -> Iterator[Shelf]:
        for kind in kinds:
            for shelf in tuple(self._of_kind.get(kind, ())):
                if needs not in shelf[2]:
                    yield shelf

    def _first_with_room(
        self, shelf: Shelf, size: Callable[[list[int]], int | None], needs: Needs
    ) -> Found | None:
        """The first node of the size that `size` picks; those without room go to a shelf of their own."""
        kind, fresh, barred = shelf
        while (gpus := size(self._sizes.get(shelf, []))) is not None:
            position = self._shelves[shelf][gpus][0]
            if not needs or self._pods_that_fit(position, needs):
                return shelf, gpus, position
            self._take(shelf, gpus)
            self._put((kind, fresh, barred | self._no_less[needs]), gpus, position)
        return None

    def _tightest(self, kinds: Iterable[int], gpus: int, needs: Needs) -> Found | None:
        """The node with room for all of `gpus` that has least over; fresh nodes only when no other has."""

        def at_least(sizes: list[int]) -> int | None:
            index = bisect_left(sizes, gpus)
            return sizes[index] if index < len(sizes) else None

        found = [
            each
            for shelf in self._candidates(kinds, needs)
            if (each := self._first_with_room(shelf, at_least, needs)) is not None
        ]
        return min(found, key=self._least_over, default=None)

    def _least_over(self, found: Found) -> tuple[int, bool, int, int]:
        (kind, fresh, _), size, position = found
        return self._wanted[kind], fresh, size, position

    def _roomiest(self, kinds: Iterable[int], pod: int, needs: Needs) -> Found | None:
        """The node with room for most pods; one in use rather than a fresh one."""

        def for_most(sizes: list[int]) -> int | None:
            if not sizes or sizes[-1] < pod:
                return None
            return sizes[bisect_left(sizes, sizes[-1] // pod * pod)]

        found = [
            each
            for shelf in self._candidates(kinds, needs)
            if (each := self._first_with_room(shelf, for_most, needs)) is not None
        ]

        def most_pods(each: Found) -> tuple[int, int, bool, int, int]:
            (kind, fresh, _), size, position = each
            return self._wanted[kind], -(size // pod), fresh, size, position

        return min(found, key=most_pods, default=None)

    def _take(self, shelf: Shelf, size: int) -> None:
        """Take the first node off a shelf."""
        heap = self._shelves[shelf][size]
        heappop(heap)
        if not heap:
            del self._shelves[shelf][size]
            self._sizes[shelf].remove(size)
            if not self._sizes[shelf]:
                del self._shelves[shelf], self._sizes[shelf]
                self._of_kind[shelf[0]].remove(shelf)

    def _put(self, shelf: Shelf, size: int, position: int) -> None:
        if size == 0:
            return
        if shelf not in self._shelves:
            self._shelves[shelf], self._sizes[shelf] = {}, []
            self._of_kind.setdefault(shelf[0], []).append(shelf)
        by_size = self._shelves[shelf]
        if size not in by_size:
            by_size[size] = []
            insort(self._sizes[shelf], size)
        heappush(by_size[size], position)


_NOTHING_KNOWN: frozenset[Needs] = frozenset()


def _no_less(asked: Iterable[Needs]) -> dict[Needs, frozenset[Needs]]:
    """For each pod the pods that need no less of anything: where it has no room they have none."""
    pods = [(needs, dict(needs)) for needs in asked]
    return {
        needs: frozenset(
            other
            for other, amounts in pods
            if all(amounts.get(resource, 0) >= amount for resource, amount in needs)
        )
        for needs, _ in pods
    }


def _pod_sizes(option: Option, parts: Sequence[Part]) -> Iterator[int]:
    """Sizes that all pods of the replica could have, the largest first."""
    unit = option.cut.pod_gpus
    if not option.merges:
        yield unit
        return
    for stages in range(option.cut.pods, 0, -1):
        if all(gpus % (stages * unit) == 0 for _, gpus in parts):
            yield stages * unit


def has_room(packed: Packed, stock: Stock) -> bool:
    """Whether the nodes have room for all that the pods of these placements need beside GPUs."""
    need: Counter[tuple[int, str]] = Counter()
    for _, placement in packed:
        for position, gpus in placement.nodes:
            for resource, amount in placement.option.needs:
                need[position, resource] += gpus // placement.pod_gpus * amount
    return all(stock.left(position, resource) >= amount for (position, resource), amount in need.items())
