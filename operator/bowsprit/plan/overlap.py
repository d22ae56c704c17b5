"""Models that share some of their nodes: how many pods of which layout go to which kind of nodes.

Arbitration counts slots per set of nodes. Where sets are equal or disjoint that is exact; where a selector
or a taint makes them overlap, a model that may go anywhere can take the only nodes of one that may not. Here
the same objective is met with the pods counted on each kind of nodes, and every replica is told its share of
each kind. On one kind the counting is exact again (pods of 1, 2, 4, 8 GPUs), however the sets overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bowsprit.plan.arbitration import Choice, Columns, Peers, add_groups, age_levels, levels, read
from bowsprit.plan.ask import Option
from bowsprit.plan.ground import Stock
from bowsprit.plan.lexicographic import Program
from bowsprit.plan.packing import Item, Part, turns

MAX_COLUMNS = 1000
"""A larger program takes longer than a better answer is worth."""

PodColumns = Mapping[int, int]
"""Kind -> the column of an option's pods there."""


def shared_out(groups: Sequence[Peers], stock: Stock) -> list[Item] | None:
    """The best replicas, each with its share of every kind of nodes; None when the problem is too large."""
    program = Program()
    columns = add_groups(program, groups, [[1] * len(group.example.options) for group in groups])
    pods = [[_pod_columns(program, option, stock) for option in group.example.options] for group in groups]
    if len(program.upper) > MAX_COLUMNS:
        return None
    _add_replica_rows(program, groups, columns, pods)
    _add_slot_rows(program, groups, pods, stock)
    values = program.minimise(
        [*levels(groups, columns), *age_levels(groups, columns)], [0] * len(program.upper)
    )
    return None if values is None else _items(groups, read(columns, values), pods, values)


def _pod_columns(program: Program, option: Option, stock: Stock) -> PodColumns:
    slots = {kind: stock.slots((kind,), option.cut.pod_gpus) for kind in option.site.kinds}
    return {kind: program.column(number) for kind, number in slots.items() if number}


def _add_replica_rows(
    program: Program,
    groups: Sequence[Peers],
    columns: Sequence[Columns],
    pods: Sequence[Sequence[PodColumns]],
) -> None:
    """Pods over all kinds are the pods of the replicas, no more and no fewer."""
    for group, each, group_pods in zip(groups, columns, pods, strict=True):
        for option, (replicas,), by_kind in zip(
            group.example.options, each.replicas, group_pods, strict=True
        ):
            for sign in (1, -1):
                weights = {replicas: sign * option.cut.pods}
                program.at_most({**weights, **dict.fromkeys(by_kind.values(), -sign)}, 0)


def _add_slot_rows(
    program: Program, groups: Sequence[Peers], pods: Sequence[Sequence[PodColumns]], stock: Stock
) -> None:
    """On each kind and for each size: pods of the size and larger ones, counted in its slots."""
    sized = [
        (option.cut.pod_gpus, by_kind)
        for group, group_pods in zip(groups, pods, strict=True)
        for option, by_kind in zip(group.example.options, group_pods, strict=True)
    ]
    for kind in range(len(stock.ground.kinds)):
        on_kind = [(size, by_kind[kind]) for size, by_kind in sized if kind in by_kind]
        for least in sorted({size for size, _ in on_kind}):
            weights = {column: size // least for size, column in on_kind if size >= least}
            program.at_most(weights, stock.slots((kind,), least))


def _items(
    groups: Sequence[Peers], choice: Choice, pods: Sequence[Sequence[PodColumns]], values: Sequence[int]
) -> list[Item]:
    answer: list[Item] = []
    for group, counts, group_pods in zip(groups, choice, pods, strict=True):
        shares: list[tuple[Option, tuple[Part, ...]]] = []
        for option, count, by_kind in zip(group.example.options, counts, group_pods, strict=True):
            there = {kind: values[column] for kind, column in by_kind.items()}
            shares.extend((option, _share(option, there)) for _ in range(count))
        answer.extend(Item(ask, *share) for ask, share in zip(turns(group), shares, strict=False))
    return answer


def _share(option: Option, there: dict[int, int]) -> tuple[Part, ...]:
    """Pods for one replica, taken off `there`: all of one kind where one has enough, else of the fullest."""
    left = option.cut.pods
    parts: list[Part] = []
    while left:
        enough = [kind for kind, pods in there.items() if pods >= left]
        kind = min(enough, key=there.__getitem__) if enough else max(there, key=there.__getitem__)
        used = min(left, there[kind])
        there[kind] -= used
        left -= used
        parts.append(((kind,), used * option.cut.pod_gpus))
    return tuple(parts)
