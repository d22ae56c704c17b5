"""Which models get how many replicas in which layouts: a knapsack with a few rows per GPU type.

Pods of the sizes 1, 2, 4, 8 divide each other, so they fit on nodes exactly when, for each of the sizes t,
the pods of size t or more, counted in slots of t, are at most the sum over nodes of floor(free / t).
Necessity is plain; and placing the pods largest first, each on any node with room, cannot fail, because a
pod of size s takes exactly s / t slots of every t up to s, and no larger pod is left to miss others. So
nodes do not appear here at all.

The objective, each level only among the best of those before it:

1. for each priority, the highest first: most models with at least one replica, then most replicas;
2. latency ranks of the models that ask for it;
3. fewest GPUs;
4. the layouts that serve best (Option.serving).

Fewest nodes spanned and broken into follow in packing; ties go to the older model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from bowsprit.plan.ask import Ask, Option
from bowsprit.plan.ground import Stock
from bowsprit.plan.lexicographic import Program, Weights, value_of

AGE_LEVELS = 12
"""Ties are broken model by model for so many groups of like models; past it by the sum of age ranks."""


@dataclass(frozen=True, slots=True)
class Peers:
    """Asks that the objective cannot tell apart, the oldest first."""

    asks: tuple[Ask, ...]

    @property
    def example(self) -> Ask:
        return self.asks[0]

    @property
    def most(self) -> int:
        return sum(ask.missing for ask in self.asks)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one group of peers: replicas by option (one or more columns each), and models served."""

    replicas: tuple[tuple[int, ...], ...]
    models: int | None

    def all(self) -> Iterable[int]:
        return (column for option in self.replicas for column in option)


Choice = tuple[tuple[int, ...], ...]
"""Replicas by group of peers and option."""


def peers(asks: Iterable[Ask]) -> tuple[Peers, ...]:
    """Equal asks together, in the order of the oldest of each."""
    groups: dict[tuple[int, int, bool, tuple[Option, ...]], list[Ask]] = {}
    for ask in sorted(asks, key=lambda ask: ask.order):
        groups.setdefault((ask.priority, ask.missing, ask.has_one, ask.options), []).append(ask)
    return tuple(Peers(tuple(members)) for members in groups.values())


def choose(groups: Sequence[Peers], stock: Stock) -> Choice:
    """How many replicas of each group of peers get which option."""
    limits = Limits(groups, stock)
    easy = _everybody(groups, limits)
    if easy is not None:
        return easy
    program = Program()
    columns = add_groups(program, groups, [[1] * len(group.example.options) for group in groups])
    limits.add_rows(program, columns)
    nothing = [0] * len(program.upper)
    values = program.minimise([*levels(groups, columns), *age_levels(groups, columns)], nothing)
    return read(columns, values or nothing)


def _everybody(groups: Sequence[Peers], limits: Limits) -> Choice | None:
    """All replicas in layouts of which none is cheaper for its model, when that has room: nothing can be
    better. Large pods first; GPU types that cost the same are filled one after the other."""
    used = [0] * len(limits.rows)
    counts: dict[int, list[int]] = {}
    order = sorted(range(len(groups)), key=lambda index: -groups[index].example.options[0].cut.pod_gpus)
    for index in order:
        group = groups[index]
        options = group.example.options
        counts[index] = [0] * len(options)
        left = group.most
        for number, option in enumerate(options):
            if left == 0 or option.cost != options[0].cost:
                break
            taken = limits.taken(option)
            rooms = [(limits.rows[row][2] - used[row]) // each for row, each in taken.items()]
            counts[index][number] = max(0, min(left, *rooms))
            left -= counts[index][number]
            for row, each in taken.items():
                used[row] += each * counts[index][number]
        if left:
            return None
    return tuple(tuple(counts[index]) for index in range(len(groups)))


def read(columns: Sequence[Columns], values: Sequence[int]) -> Choice:
    return tuple(
        tuple(sum(values[column] for column in option) for option in group.replicas) for group in columns
    )


def add_groups(program: Program, groups: Sequence[Peers], ways: Sequence[Sequence[int]]) -> list[Columns]:
    """Columns and rows of every group; `ways` says into how many columns each option is divided."""
    answer = []
    for group, counts in zip(groups, ways, strict=True):
        example = group.example
        replicas = tuple(tuple(program.column(group.most) for _ in range(count)) for count in counts)
        columns = Columns(replicas, None if example.has_one else program.column(len(group.asks)))
        served = dict.fromkeys(columns.all(), 1)
        program.at_most(served, group.most)
        if columns.models is not None:
            program.at_most({columns.models: 1, **dict.fromkeys(served, -1)}, 0)
            program.at_most({**served, columns.models: -example.missing}, 0)
        answer.append(columns)
    return answer


def levels(groups: Sequence[Peers], columns: Sequence[Columns]) -> list[Weights]:
    """The objective, level by level, to be minimised. Groups come by priority."""
    answer: list[Weights] = []
    pairs = list(zip(groups, columns, strict=True))
    for _, members in groupby(pairs, key=lambda pair: pair[0].example.priority):
        same = [each for _, each in members]
        answer.append({each.models: -1 for each in same if each.models is not None})
        answer.append({column: -1 for each in same for column in each.all()})
    priced = [
        (column, option.cost)
        for group, each in pairs
        for option, ways in zip(group.example.options, each.replicas, strict=True)
        for column in ways
    ]
    answer.extend({column: cost[level] for column, cost in priced if cost[level]} for level in range(3))
    return answer


def age_levels(groups: Sequence[Peers], columns: Sequence[Columns]) -> list[Weights]:
    """Ties go to the older: as many replicas as can be for the first group, then for the second, and so
    on."""
    order = sorted(range(len(groups)), key=lambda index: groups[index].example.order)
    if len(groups) <= AGE_LEVELS:
        return [dict.fromkeys(columns[index].all(), -1) for index in order]
    ranks = {column: rank for rank, index in enumerate(order) for column in columns[index].all() if rank}
    return [ranks]


def level_values(groups: Sequence[Peers], choice: Choice) -> list[int]:
    """What a choice scores at each of `levels`."""
    program = Program()
    columns = add_groups(program, groups, [[1] * len(group.example.options) for group in groups])
    values = [0] * len(program.upper)
    for group, each, counts in zip(groups, columns, choice, strict=True):
        for (column,), count in zip(each.replicas, counts, strict=True):
            values[column] = count
        if each.models is not None:
            values[each.models] = min(len(group.asks), sum(counts))
    return [value_of(weights, values) for weights in levels(groups, columns)]


class Limits:
    """The counting rows: per set of nodes and size, the slots that there are."""

    def __init__(self, groups: Sequence[Peers], stock: Stock) -> None:
        self._groups = groups
        options = {option for group in groups for option in group.example.options}
        sizes = sorted({option.cut.pod_gpus for option in options})
        zones = sorted({option.site.kinds for option in options})
        everything = tuple(sorted({kind for zone in zones for kind in zone}))
        self.rows: list[tuple[frozenset[int], int, int]] = []
        for zone in dict.fromkeys([*zones, everything]):
            kinds = frozenset(zone)
            sizes_free = stock.sizes(zone)
            self.rows.extend(
                (kinds, size, sum(free // size * count for free, count in sizes_free.items()))
                for size in sizes
            )

    def taken(self, option: Option) -> dict[int, int]:
        """Slots that a replica takes, by row."""
        pod, kinds = option.cut.pod_gpus, option.site.kinds
        return {
            row: option.cut.pods * (pod // size)
            for row, (zone, size, _) in enumerate(self.rows)
            if size <= pod and zone.issuperset(kinds)
        }

    def add_rows(self, program: Program, columns: Sequence[Columns]) -> None:
        weights: list[dict[int, int]] = [{} for _ in self.rows]
        for group, each in zip(self._groups, columns, strict=True):
            for option, ways in zip(group.example.options, each.replicas, strict=True):
                for row, taken in self.taken(option).items():
                    weights[row].update(dict.fromkeys(ways, taken))
                    for column in ways:
                        program.upper[column] = min(program.upper[column], self.rows[row][2] // taken)
        for taken_by, (_, _, slots) in zip(weights, self.rows, strict=True):
            if taken_by:
                program.at_most(taken_by, slots)
