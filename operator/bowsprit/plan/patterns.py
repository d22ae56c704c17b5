"""The exact packing of a small problem: layouts and nodes together, as a cutting-stock program.

A replica over several nodes is a set of chunks, one a node; a node is cut into slots by a pattern. How many
replicas have which chunks, and how many nodes of a size have which pattern, are the columns, so the program
grows with the sizes that there are and not with the nodes. What arbitration has reached is kept as rows; then
come the last levels of the objective:

5. fewest nodes spanned, summed over the replicas;
6. fewest nodes broken into: nodes that were wholly free and no longer are.

It reckons with sets of nodes that are equal or disjoint; where they overlap it gives no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bowsprit.plan import arbitration
from bowsprit.plan.arbitration import Choice, Columns, Peers
from bowsprit.plan.ask import Ask, Option, Placement
from bowsprit.plan.ground import Stock
from bowsprit.plan.lexicographic import Program
from bowsprit.plan.packing import Packed, turns

MAX_COLUMNS = 1500
"""A larger program takes longer than a better packing is worth."""
MAX_WAYS = 24
"""Sets of chunks per option: those with the fewest chunks, and the one of single pods."""

Zone = tuple[int, ...]
Chunks = tuple[int, ...]
"""GPUs per node of one replica, the largest first."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to spread a replica of an option, and its column."""

    option: Option
    chunks: Chunks
    column: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to cut nodes that are alike, and its column."""

    zone: Zone
    fresh: bool
    positions: tuple[int, ...]
    """The nodes that are alike."""
    slots: Chunks
    column: int


def pack_exactly(groups: Sequence[Peers], choice: Choice | None, stock: Stock) -> Packed | None:
    """The best packing of whatever scores as `choice` does, or of whatever scores best when counting could
    not tell (pod sizes that do not divide each other); None when the problem is too large for it, or when
    sets of nodes overlap."""
    zones = sorted({option.site.kinds for group in groups for option in group.example.options})
    if sum(map(len, zones)) > len({kind for zone in zones for kind in zone}):
        return None
    spreads = [[_spreads(option, stock) for option in group.example.options] for group in groups]
    if sum(len(spread) for group in spreads for spread in group) > MAX_COLUMNS:
        return None
    program = Program()
    columns = arbitration.add_groups(
        program, groups, [[len(spread) for spread in group] for group in spreads]
    )
    ways = [_ways(*each) for each in zip(groups, columns, spreads, strict=True)]
    patterns = [
        pattern for zone in zones for pattern in _patterns(program, zone, _chunk_sizes(zone, ways), stock)
    ]
    if len(program.upper) > MAX_COLUMNS:
        return None
    levels = arbitration.levels(groups, columns)
    if choice is not None:
        for weights, score in zip(levels, arbitration.level_values(groups, choice), strict=True):
            if weights:
                program.at_most(weights, score)
        levels = []
    _add_node_rows(program, patterns)
    _add_slot_rows(program, ways, patterns)
    spanned = {way.column: len(way.chunks) for group in ways for way in group}
    broken = {pattern.column: 1 for pattern in patterns if pattern.fresh}
    values = program.minimise([*levels, spanned, broken, *arbitration.age_levels(groups, columns)])
    return None if values is None else _filled(groups, ways, patterns, values)


# ---- columns ----------------------------------------------------------------------------------------------


def _spreads(option: Option, stock: Stock) -> list[Chunks]:
    """The ways to spread a replica, those over the fewest nodes first."""
    cut = option.cut
    largest = max(stock.sizes(option.site.kinds), default=0) // cut.pod_gpus
    if largest == 0:
        return []
    spreads: list[Chunks] = []
    for parts in range(-(-cut.pods // largest), cut.pods):
        left = MAX_WAYS - 1 - len(spreads)
        spreads.extend(islice(_partitions(cut.pods, parts, largest), left))
    spreads.append((1,) * cut.pods)
    return [tuple(part * cut.pod_gpus for part in spread) for spread in spreads]


def _partitions(total: int, parts: int, largest: int) -> Iterator[Chunks]:
    """`total` as a sum of `parts` numbers from 1 to `largest`, each at most the one before it."""
    if parts == 1:
        if total <= largest:
            yield (total,)
        return
    for first in range(min(largest, total - parts + 1), -(-total // parts) - 1, -1):
        for rest in _partitions(total - first, parts - 1, first):
            yield (first, *rest)


def _ways(group: Peers, columns: Columns, spreads: Sequence[Sequence[Chunks]]) -> list[Way]:
    return [
        Way(option, chunks, column)
        for option, option_columns, spread in zip(
            group.example.options, columns.replicas, spreads, strict=True
        )
        for column, chunks in zip(option_columns, spread, strict=True)
    ]


def _chunk_sizes(zone: Zone, ways: Sequence[Sequence[Way]]) -> list[int]:
    return sorted(
        {size for group in ways for way in group if way.option.site.kinds == zone for size in way.chunks},
        reverse=True,
    )


def _patterns(program: Program, zone: Zone, chunk_sizes: Sequence[int], stock: Stock) -> Iterator[Pattern]:
    """Every way to cut each size of node so that no further chunk would fit."""
    alike: dict[tuple[bool, int], list[int]] = {}
    for kind in zone:
        for position in stock.ground.kinds[kind].nodes:
            free = stock.free[position]
            if free > 0:
                alike.setdefault((stock.fresh(position), free), []).append(position)
    for (fresh, free), positions in sorted(alike.items()):
        for slots in _maximal(free, chunk_sizes):
            if slots:
                yield Pattern(zone, fresh, tuple(sorted(positions)), slots, program.column(len(positions)))


def _maximal(free: int, sizes: Sequence[int]) -> Iterator[Chunks]:
    """Sums of `sizes` (descending) up to `free` to which none can be added."""
    if not sizes or free < sizes[-1]:
        yield ()
        return
    for index, size in enumerate(sizes):
        if size <= free:
            for rest in _maximal(free - size, sizes[index:]):
                yield (size, *rest)


# ---- rows -------------------------------------------------------------------------------------------------


def _add_node_rows(program: Program, patterns: Sequence[Pattern]) -> None:
    """A node is cut once."""
    by_nodes: dict[tuple[int, ...], list[int]] = {}
    for pattern in patterns:
        by_nodes.setdefault(pattern.positions, []).append(pattern.column)
    for positions, columns in by_nodes.items():
        program.at_most(dict.fromkeys(columns, 1), len(positions))


def _add_slot_rows(program: Program, ways: Sequence[Sequence[Way]], patterns: Sequence[Pattern]) -> None:
    """Per zone and size: chunks of at least the size have slots of at least the size."""
    needs: dict[Zone, list[Way]] = {}
    for group in ways:
        for way in group:
            needs.setdefault(way.option.site.kinds, []).append(way)
    for zone, zone_ways in needs.items():
        for size in sorted({chunk for way in zone_ways for chunk in way.chunks}):
            taken = {way.column: sum(chunk >= size for chunk in way.chunks) for way in zone_ways}
            given = {
                pattern.column: -sum(slot >= size for slot in pattern.slots)
                for pattern in patterns
                if pattern.zone == zone
            }
            program.at_most({c: w for c, w in {**taken, **given}.items() if w}, 0)


# ---- the answer -------------------------------------------------------------------------------------------


def _filled(
    groups: Sequence[Peers], ways: Sequence[Sequence[Way]], patterns: Sequence[Pattern], values: Sequence[int]
) -> Packed:
    """Replicas on nodes. Largest chunk first, each in the tightest slot: a later chunk never misses it, since
    the slots that it could use include all that an earlier one could."""
    replicas: list[tuple[Ask, Way]] = []
    for group, group_ways in zip(groups, ways, strict=True):
        chosen = [way for way in group_ways for _ in range(values[way.column])]
        replicas.extend(zip(turns(group), chosen, strict=False))
    slots = _slots(patterns, values)
    taken: list[Counter[int]] = [Counter() for _ in replicas]
    chunks = [(chunk, number) for number, (_, way) in enumerate(replicas) for chunk in way.chunks]
    for chunk, number in sorted(chunks, key=lambda each: (-each[0], each[1])):
        zone = slots[replicas[number][1].option.site.kinds]
        slot = min(slot for slot in zone if slot[0] >= chunk)
        zone.remove(slot)
        taken[number][slot[1]] += chunk
    return [
        (ask, Placement(way.option, tuple(sorted(nodes.items(), key=lambda node: (-node[1], node[0])))))
        for (ask, way), nodes in zip(replicas, taken, strict=True)
    ]


def _slots(patterns: Sequence[Pattern], values: Sequence[int]) -> dict[Zone, list[tuple[int, int]]]:
    """Slots by zone: GPUs and node position."""
    slots: dict[Zone, list[tuple[int, int]]] = {}
    used: Counter[tuple[int, ...]] = Counter()
    for pattern in patterns:
        for _ in range(values[pattern.column]):
            position = pattern.positions[used[pattern.positions]]
            used[pattern.positions] += 1
            slots.setdefault(pattern.zone, []).extend((slot, position) for slot in pattern.slots)
    return slots
