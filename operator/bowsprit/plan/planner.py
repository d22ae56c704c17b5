"""plan(): from all wishes and one fleet to replica plans and refusals, in one pure step.

1. What stands stays; a surplus, and old replicas that are no longer needed, retire.
2. What was promised is kept while its GPUs are there.
3. What is missing is planned for all models together (arbitration, packing).
4. A model in the middle of a rollout that found no room is planned on GPUs that come back from its own pods,
   and takes the place of its old replicas when its rollout mode allows.
5. What is still missing gets a refusal with numbers.

The answer is the same for any order of wishes and nodes, and planning again with the answer changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bowsprit.plan import joint
from bowsprit.plan.ask import Ask, Placement
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.ground import Ground, Site, Stock, survey
from bowsprit.plan.holdings import Holdings, fewest, gpus_by_node
from bowsprit.plan.key import ModelKey
from bowsprit.plan.materialize import replica_plan
from bowsprit.plan.options import options_of
from bowsprit.plan.packing import Packed
from bowsprit.plan.refusal import Scarcity, refuse
from bowsprit.plan.result import ModelPlan, Plan, ReplicaPlan
from bowsprit.plan.wish import Accelerator, RolloutMode, Wish


def plan(wishes: Sequence[Wish], fleet: Fleet) -> Plan:
    """Replica plans for every wish; the models are in the order of their keys."""
    models = sorted((Holdings(wish) for wish in wishes), key=lambda model: model.order)
    free = {node.name: node.free for node in fleet.nodes}
    for model in models:
        model.retire_replaced()
        model.keep_promises(free)
    waiting = [model for model in models if model.missing > 0]
    if not waiting:
        return Plan(tuple(sorted((_settled(model) for model in models), key=lambda each: each.key)))
    return _Pass(models, waiting, fleet, free).plan()


def _settled(model: Holdings) -> ModelPlan:
    if model.wish.rollout is RolloutMode.RECREATE:
        model.give_up(model.outgoing)
    return ModelPlan(model.key, model.wish.replicas, tuple(model.kept), tuple(model.retire))


class _Pass:
    """One planning pass in which something is missing."""

    def __init__(
        self, models: Sequence[Holdings], waiting: Sequence[Holdings], fleet: Fleet, free: dict[str, int]
    ) -> None:
        self.models = models
        self.waiting = waiting
        self.fleet = fleet
        self.free = free
        """GPUs by node that nobody stands on or was promised."""
        self.ground: Ground = survey(fleet.nodes, [model.wish.accelerator for model in waiting])
        self._sites: dict[Accelerator, tuple[Site, ...]] = {}
        self._before: Stock = self._stock()

    def plan(self) -> Plan:
        for model in self.waiting:
            model.options = options_of(model.wish, self._sites_of(model.wish.accelerator))
            if model.wish.rollout is RolloutMode.RECREATE and model.options.options:
                model.give_up(model.outgoing)
        self._place_jointly()
        for model in self.waiting:
            if model.missing > 0 and (any(model.coming.values()) or model.outgoing):
                self._place_in_place(model)
        return self._answer()

    def _sites_of(self, accelerator: Accelerator) -> tuple[Site, ...]:
        if accelerator not in self._sites:
            self._sites[accelerator] = self.ground.sites(accelerator)
        return self._sites[accelerator]

    def _stock(
        self, extra: Mapping[str, int] | None = None, *, base: Mapping[str, int] | None = None
    ) -> Stock:
        free = self.free if base is None else base
        more = extra or {}
        return Stock(self.ground, [free.get(n.name, 0) + more.get(n.name, 0) for n in self.ground.nodes])

    # ---- joint -----------------------------------------------------------------------------------------------

    def _place_jointly(self) -> None:
        asks = [ask for model in self.waiting if (ask := _ask(model)) is not None]
        self._accept(joint.place(asks, self._stock()), self.free)

    def _accept(self, packed: Packed, free: dict[str, int]) -> None:
        by_key = {model.key: model for model in self.waiting}
        for ask, placement in packed:
            model = by_key[ask.key]
            model.placements.append(placement)
            model.take(self._need(placement), free)

    def _need(self, placement: Placement) -> Counter[str]:
        return Counter({self.ground.nodes[position].name: gpus for position, gpus in placement.nodes})

    # ---- rollout ---------------------------------------------------------------------------------------------

    def _place_in_place(self, model: Holdings) -> None:
        """Place what is missing with the help of GPUs that come back from the model's own pods."""

        def packed_with(old: Sequence[ReplicaPlan]) -> Packed:
            ask = _ask(model)
            if ask is None:
                return []
            back = model.coming + gpus_by_node(old)
            return joint.place([ask], self._stock(back))

        def enough(old: Sequence[ReplicaPlan]) -> bool:
            return len(packed_with(old)) == wanted

        candidates = model.outgoing if model.wish.rollout is RolloutMode.AUTO else []
        wanted = len(packed_with(candidates))
        victims = fewest(candidates, enough)
        if victims is None or wanted == 0:
            return
        packed = packed_with(victims)
        model.give_up(victims)
        self._accept(packed, self.free)

    # ---- answer ----------------------------------------------------------------------------------------------

    def _answer(self) -> Plan:
        scarcity = Scarcity(self.fleet, self._stock(), self._placed_now())
        answers = []
        position = 0
        served_next = sorted(
            self.models, key=lambda m: (-m.wish.priority, bool(m.kept or m.placements), m.order)
        )
        for model in served_next:
            refusal = refuse(model, scarcity) if model.missing > 0 else None
            waits = refusal is not None and refusal.waits
            position += waits
            if model.missing <= 0:
                settled = _settled(model)
                retire = settled.retire
            else:
                retire = tuple(model.retire)
            answers.append(
                ModelPlan(
                    key=model.key,
                    wanted=model.wish.replicas,
                    replicas=self._replicas(model),
                    retire=retire,
                    refusal=refusal,
                    position=position if waits else None,
                )
            )
        return Plan(tuple(sorted(answers, key=lambda each: each.key)))

    def _placed_now(self) -> dict[tuple[ModelKey, str], int]:
        """GPUs that this pass gave to models, by product."""
        placed: Counter[tuple[ModelKey, str]] = Counter()
        for model in self.waiting:
            for placement in model.placements:
                placed[model.key, placement.option.site.product] += placement.option.cut.gpus
        return placed

    def _replicas(self, model: Holdings) -> tuple[ReplicaPlan, ...]:
        wish = model.wish
        taken = {r.index for r in (*wish.standing, *wish.outgoing, *wish.leaving, *model.kept)}
        indexes = _unused(taken)
        new = []
        for index, placement in zip(indexes, model.placements, strict=False):
            assert model.options is not None, "only a model with options has placements"
            largest = max(self._before.sizes(placement.option.site.kinds), default=0)
            new.append(replica_plan(wish, model.options, placement, index, self.ground, largest))
        return tuple(sorted([*model.kept, *new], key=lambda replica: replica.index))


def _ask(model: Holdings) -> Ask | None:
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


def _unused(taken: set[int]) -> Iterable[int]:
    index = 0
    while True:
        if index not in taken:
            yield index
        index += 1
