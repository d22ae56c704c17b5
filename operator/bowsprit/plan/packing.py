"""Which nodes: placing chosen replicas one by one, each where it does least harm.

Larger pods go first, so that a choice that keeps the counting rows of arbitration always finds room. A
replica goes on one node when one has room, on a node that is in use already rather than on a fresh one, and
there where the least is left over; else over the fewest nodes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from bowsprit.plan.arbitration import Choice, Peers
from bowsprit.plan.ask import Ask, Option, Placement
from bowsprit.plan.ground import Stock

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


class Shelves:
    """Nodes by kind, by whether they are in use, and by free GPUs; each shelf in the order of names.

    Of the nodes that will do, those go first that the fewest sets of nodes include: others may need the rest.
    """

    def __init__(self, stock: Stock, options: Iterable[Option]) -> None:
        self._free = list(stock.free)
        self._kind_of = stock.ground.kind_of
        self._wanted = Counter(kind for zone in {option.site.kinds for option in options} for kind in zone)
        self._shelves: dict[tuple[int, bool], dict[int, list[int]]] = {}
        self._sizes: dict[tuple[int, bool], list[int]] = {}
        for position, size in enumerate(self._free):
            if size > 0:
                shelf = (self._kind_of[position], stock.fresh(position))
                self._shelves.setdefault(shelf, {}).setdefault(size, []).append(position)
        for shelf, by_size in self._shelves.items():
            self._sizes[shelf] = sorted(by_size)
            for heap in by_size.values():
                heapify(heap)

    def place(self, option: Option, parts: Iterable[Part]) -> Placement | None:
        """Take the replica's GPUs off the shelves; None, and nothing is taken, when they are not there."""
        taken: list[tuple[int, int]] = []
        came_from: list[tuple[tuple[int, bool], int, int]] = []
        for kinds, gpus in parts:
            rest = gpus
            while rest:
                found = self._tightest(kinds, rest) or self._roomiest(kinds, option.cut.pod_gpus)
                if found is None:
                    for shelf, size, position in came_from:
                        self._put(shelf, size, position)
                    return None
                shelf, size, position = found
                self._take(shelf, size)
                came_from.append(found)
                used = min(rest, size // option.cut.pod_gpus * option.cut.pod_gpus)
                taken.append((position, used))
                rest -= used
        for (_, size, position), (_, used) in zip(came_from, taken, strict=True):
            self._put((self._kind_of[position], False), size - used, position)
        return Placement(option, tuple(sorted(taken, key=lambda node: (-node[1], node[0]))))

    def _tightest(self, kinds: Iterable[int], gpus: int) -> tuple[tuple[int, bool], int, int] | None:
        """The node with room for all of `gpus` that has least over; fresh nodes only when no other has."""
        found = []
        for kind in kinds:
            for fresh in (False, True):
                sizes = self._sizes.get((kind, fresh), [])
                index = bisect_left(sizes, gpus)
                if index < len(sizes):
                    position = self._shelves[kind, fresh][sizes[index]][0]
                    found.append((self._wanted[kind], fresh, sizes[index], position, kind))
        if not found:
            return None
        _, fresh, size, position, kind = min(found)
        return (kind, fresh), size, position

    def _roomiest(self, kinds: Iterable[int], pod: int) -> tuple[tuple[int, bool], int, int] | None:
        """The node with room for most pods; one in use rather than a fresh one."""
        found = []
        for kind in kinds:
            for fresh in (False, True):
                sizes = self._sizes.get((kind, fresh))
                if sizes and sizes[-1] >= pod:
                    pods = sizes[-1] // pod
                    size = sizes[bisect_left(sizes, pods * pod)]
                    position = self._shelves[kind, fresh][size][0]
                    found.append((self._wanted[kind], -pods, fresh, size, position, kind))
        if not found:
            return None
        _, _, fresh, size, position, kind = min(found)
        return (kind, fresh), size, position

    def _take(self, shelf: tuple[int, bool], size: int) -> None:
        """Take the first node off a shelf."""
        heap = self._shelves[shelf][size]
        heappop(heap)
        if not heap:
            del self._shelves[shelf][size]
            self._sizes[shelf].remove(size)

    def _put(self, shelf: tuple[int, bool], size: int, position: int) -> None:
        if size == 0:
            return
        by_size = self._shelves.setdefault(shelf, {})
        if size not in by_size:
            by_size[size] = []
            self._sizes[shelf] = sorted(by_size)
        heappush(by_size[size], position)
