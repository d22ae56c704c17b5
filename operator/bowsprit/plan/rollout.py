"""Models in the middle of a rollout: new replicas beside the old ones, or in their place.

The joint answer puts new replicas beside the old where there is room. A model that finds none may use the
GPUs that come back from its own pods: those that are leaving already, and, in mode Auto, those of old
replicas that it then gives up, as few as will do. All but one of the wanted replicas, old and new
together, stay Ready meanwhile; only where one new replica takes the room of several old ones do these go
together, and nothing else before it serves. It may also take free GPUs that the joint answer gave to
models of lower priority; those are then planned again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan import joint
from bowsprit.plan.ask import Ask, Placement
from bowsprit.plan.ground import Ground, Stock
from bowsprit.plan.holdings import Holdings, fewest
from bowsprit.plan.packing import Packed
from bowsprit.plan.result import ReplicaPlan
from bowsprit.plan.spare import GPUS, Load, Spare, Thing, load_of, plus, together


class Placing:
    """What this pass gives to whom. `free` is reduced by what is settled."""

    def __init__(self, waiting: Sequence[Holdings], ground: Ground, free: Spare) -> None:
        self._waiting = waiting
        self._ground = ground
        self._free = free

    def place(self) -> None:
        """Settle new replicas for all that wait; `waiting` comes in the order of service."""
        open_models = list(self._waiting)
        packed = self._jointly(open_models)
        for model in self._waiting:
            if not _own_gpus(model):
                continue
            joint_share = [placement for ask, placement in packed if ask.key == model.key]
            if len(joint_share) == model.missing:
                continue
            if not self._in_place(model, joint_share, packed):
                continue
            open_models.remove(model)
            packed = [(ask, placement) for ask, placement in packed if ask.key != model.key]
            if not self._holds(packed):
                packed = self._jointly(open_models)
        by_key = {model.key: model for model in open_models}
        for ask, placement in packed:
            self._settle(by_key[ask.key], placement)

    def _jointly(self, models: Sequence[Holdings]) -> Packed:
        asks = [ask for model in models if (ask := ask_of(model)) is not None]
        return joint.place(asks, self._stock({})) if asks else []

    def _stock(self, more: Load) -> Stock:
        return Stock(self._ground, plus(self._free, more))

    def _holds(self, packed: Packed) -> bool:
        """Whether all that the placements take is free still."""
        used = self._need(placement for _, placement in packed)
        return all(self._free[thing] >= amount for thing, amount in used.items())

    def _need(self, placements: Iterable[Placement]) -> dict[Thing, int]:
        need: dict[Thing, int] = {}
        for placement in placements:
            for position, gpus in placement.nodes:
                node = self._ground.nodes[position].name
                pods = gpus // placement.pod_gpus
                asked = ((what, pods * amount) for what, amount in placement.option.needs)
                for what, amount in ((GPUS, gpus), *asked):
                    need[node, what] = need.get((node, what), 0) + amount
        return need

    def _settle(self, model: Holdings, placement: Placement) -> None:
        model.placements.append(placement)
        model.take(self._need([placement]), self._free)

    def _in_place(self, model: Holdings, share: Sequence[Placement], packed: Packed) -> bool:
        """Place more replicas of the model than its share, with its own GPUs; whether that went."""
        ask = ask_of(model)
        if ask is None:
            return False
        others = self._need(
            placement
            for other, placement in packed
            if other.key != model.key and other.priority >= ask.priority
        )
        spare = {thing: -amount for thing, amount in others.items()}

        def stock_with(old: Sequence[ReplicaPlan]) -> Stock:
            back = together(model.coming, load_of(old))
            return self._stock(together(back, spare))

        turn = _turn(model, ask, len(share), lambda asked, old: joint.most([asked], stock_with(old)))
        if turn is None:
            return False
        placements = joint.place([turn.ask], stock_with(turn.victims))
        model.give_up(turn.victims)
        for _, placement in placements:
            self._settle(model, placement)
        return True


@dataclass(frozen=True, slots=True)
class _Turn:
    """The next step of a rollout in place."""

    ask: Ask
    victims: Sequence[ReplicaPlan]


def _turn(
    model: Holdings, ask: Ask, share: int, most: Callable[[Ask, Sequence[ReplicaPlan]], int]
) -> _Turn | None:
    """What can be placed now, and who gives way for it; None when no more than `share` can.

    `most`: how many replicas there is room for when some old ones give way.
    """
    auto = model.wish.rollout is RolloutMode.AUTO
    candidates = model.expendable if auto else []
    best = most(ask, candidates)
    at_last = most(ask, model.outgoing) if auto else best
    if best == share == 0 and at_last and not model.starting:
        ask, candidates, best = replace(ask, missing=1), model.outgoing, 1
    model.in_turn = at_last > max(best, share)
    if best <= share:
        return None
    victims = fewest(candidates, lambda old: most(ask, old) >= best)
    assert victims is not None, "all candidates together are enough for the best"
    return _Turn(ask, victims)


def _own_gpus(model: Holdings) -> bool:
    """Whether GPUs come back, or could, from the model's own pods."""
    return any(model.coming.values()) or bool(model.outgoing and model.wish.rollout is RolloutMode.AUTO)


def ask_of(model: Holdings) -> Ask | None:
    """What is still missing, or None when no layout can be had."""
    if model.options is None or not model.options.options or model.missing <= 0:
        return None
    return Ask(
        key=model.key,
        created=model.wish.created,
        priority=model.wish.priority,
        missing=model.missing,
        has_one=bool(model.kept or model.placements),
        options=model.options.options,
    )
