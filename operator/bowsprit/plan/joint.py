"""All missing replicas of all models at once: arbitration, then packing.

Packing one by one is nearly always the best packing as well. Whether it is, two lower bounds tell; when they
are not met and the problem is small, the exact program decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bowsprit.plan.arbitration import Choice, Peers, choose, peers
from bowsprit.plan.ask import Ask, Option
from bowsprit.plan.ground import Stock
from bowsprit.plan.overlap import shared_out
from bowsprit.plan.packing import Packed, has_room, items, pack, pack_in_turn
from bowsprit.plan.patterns import pack_exactly

MAX_EXACT = 64
"""Replicas up to which the exact packing is tried."""


def place(asks: Iterable[Ask], stock: Stock) -> Packed:
    """Placements for as many replicas as the objective allows."""
    groups = peers(asks)
    choice = choose(groups, stock)
    packed = _one_by_one(groups, choice, stock)
    if packed is None:
        return _uncounted(groups, stock)
    if len(packed) <= MAX_EXACT and not _surely_best(packed, groups, stock):
        exact = pack_exactly(groups, choice, stock)
        if exact is not None and has_room(exact, stock):
            return exact
    return packed


def most(asks: Iterable[Ask], stock: Stock) -> int:
    """How many replicas `place` would place."""
    groups = peers(asks)
    packed = _one_by_one(groups, choose(groups, stock), stock)
    return len(_uncounted(groups, stock) if packed is None else packed)


def _uncounted(groups: Sequence[Peers], stock: Stock) -> Packed:
    """Placements where counting has chosen more than there is place for: pod sizes that do not divide each
    other, nodes that lack something else than GPUs."""
    packed = pack_in_turn((ask for group in groups for ask in group.asks), stock)
    exact = pack_exactly(groups, None, stock) if len(packed) <= MAX_EXACT else None
    return packed if exact is None or not has_room(exact, stock) else exact


def _one_by_one(groups: Sequence[Peers], choice: Choice, stock: Stock) -> Packed | None:
    """Places for what was chosen, or None when some of it has none."""
    packed = pack(items(groups, choice), stock)
    if packed is None and (shared := shared_out(groups, stock)) is not None:
        packed = pack(shared, stock)
    return packed


def _surely_best(packed: Packed, groups: Sequence[Peers], stock: Stock) -> bool:
    """Whether no packing of anything that scores alike can span or break into fewer nodes."""
    least = {ask.key: min(_least_span(option, stock) for option in ask.options) for ask, _ in packed}
    if any(len(placement.nodes) > least[ask.key] for ask, placement in packed):
        return False
    broken = {node for _, placement in packed for node, _ in placement.nodes if stock.fresh(node)}
    return len(broken) <= _least_broken(packed, groups, stock)


def _least_span(option: Option, stock: Stock) -> int:
    pods_on_largest = max(stock.sizes(option.site.kinds), default=0) // option.cut.pod_gpus
    return -(-option.cut.pods // pods_on_largest) if pods_on_largest else option.cut.pods


def _least_broken(packed: Packed, groups: Sequence[Peers], stock: Stock) -> int:
    """Fresh nodes that must be broken into: the GPUs beyond what is free on others, on the largest ones."""
    kinds = {kind for group in groups for option in group.example.options for kind in option.site.kinds}
    open_gpus, largest = 0, 1
    for kind in kinds:
        for position in stock.ground.kinds[kind].nodes:
            if stock.fresh(position):
                largest = max(largest, stock.free[position])
            else:
                open_gpus += stock.free[position]
    gpus = sum(placement.option.cut.gpus for _, placement in packed)
    return -(-max(0, gpus - open_gpus) // largest)
