"""All missing replicas of all models at once: arbitration, then packing."""

from __future__ import annotations

from collections.abc import Iterable

from bowsprit.plan.arbitration import choose, peers
from bowsprit.plan.ask import Ask
from bowsprit.plan.ground import Stock
from bowsprit.plan.packing import Packed, items, pack, pack_in_turn


def place(asks: Iterable[Ask], stock: Stock) -> Packed:
    """Placements for as many replicas as the objective allows."""
    groups = peers(asks)
    choice = choose(groups, stock)
    packed = pack(items(groups, choice), stock)
    if packed is None:
        return pack_in_turn((ask for group in groups for ask in group.asks), stock)
    return packed
