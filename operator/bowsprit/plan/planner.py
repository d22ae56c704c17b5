"""plan(): from all wishes and one fleet to replica plans and refusals, in one pure step.

1. What stands stays; a surplus, and old replicas that are no longer needed, retire.
2. What was promised is kept while its GPUs are there and its nodes take its pods.
3. What is missing is planned for all models together (arbitration, packing).
4. A model in the middle of a rollout that found no room is planned on GPUs that come back from its own pods,
   and takes the place of its old replicas when its rollout mode allows.
5. What is still missing gets a refusal with numbers.

The answer is the same for any order of wishes and nodes, and planning again with the answer changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.ground import Site, Stock, survey
from bowsprit.plan.holdings import Holdings, by_index
from bowsprit.plan.key import ModelKey
from bowsprit.plan.materialize import replica_plans
from bowsprit.plan.needs import Needs
from bowsprit.plan.on_cpus import on_cpus, plan_on_cpus
from bowsprit.plan.options import Options, options_of
from bowsprit.plan.refusal import Scarcity, refuse
from bowsprit.plan.result import ModelPlan, Plan, ReplicaPlan
from bowsprit.plan.rollout import Placing
from bowsprit.plan.spare import Amounts, Spare, load_of, plus, together
from bowsprit.plan.wish import Accelerator, Wish


def plan(wishes: Sequence[Wish], fleet: Fleet) -> Plan:
    """Replica plans for every wish; the models are in the order of their keys."""
    by_scheduler = [plan_on_cpus(wish) for wish in wishes if on_cpus(wish)]
    on_gpus = _plan_on_gpus([wish for wish in wishes if not on_cpus(wish)], fleet)
    return Plan(tuple(sorted([*by_scheduler, *on_gpus.models], key=lambda each: each.key)))


def _plan_on_gpus(wishes: Sequence[Wish], fleet: Fleet) -> Plan:
    models = sorted((Holdings(wish) for wish in wishes), key=lambda model: model.order)
    nodes = {node.name: node for node in fleet.nodes}
    free = Spare(fleet.nodes)
    for model in models:
        model.retire_replaced()
        model.keep_promises(nodes, free)
    waiting = [model for model in models if model.missing > 0]
    if not waiting:
        return Plan(tuple(sorted((_settled(model) for model in models), key=lambda each: each.key)))
    return _Pass(models, waiting, fleet, free).plan()


def _settled(model: Holdings) -> ModelPlan:
    """The answer for a model that lacks nothing."""
    _retire_all_if_recreated(model)
    replicas = tuple(sorted(model.kept, key=by_index))
    return ModelPlan(model.key, model.wish.replicas, replicas, tuple(model.retire))


def _retire_all_if_recreated(model: Holdings) -> None:
    if model.wish.rollout is RolloutMode.RECREATE:
        model.give_up(model.outgoing)


class _Pass:
    """One planning pass in which something is missing."""

    def __init__(
        self, models: Sequence[Holdings], waiting: Sequence[Holdings], fleet: Fleet, free: Spare
    ) -> None:
        self._models = models
        self._waiting = waiting
        self._fleet = fleet
        self._free = free
        """What nobody stands on or was promised."""
        self._ground = survey(
            fleet.nodes, [model.wish.accelerator for model in waiting], self._pods_to_place(), self._at_best()
        )
        self._before = self._stock()

    def plan(self) -> Plan:
        self._find_options()
        for model in self._waiting:
            if model.wish.rollout is RolloutMode.RECREATE and model.options and model.options.options:
                model.give_up(model.outgoing)
        Placing(self._waiting, self._ground, self._free).place()
        return self._answer()

    def _stock(self) -> Stock:
        return Stock(self._ground, self._free)

    def _pods_to_place(self) -> list[Needs]:
        return list(dict.fromkeys(model.wish.needs for model in self._waiting))

    def _at_best(self) -> Amounts:
        """What there would be if all the waiting models' own old pods were gone."""
        own = [replica for model in self._waiting for replica in model.outgoing]
        back = load_of(own)
        for model in self._waiting:
            if model.coming:
                back = together(back, model.coming)
        return plus(self._free, back)

    def _find_options(self) -> None:
        """Options of every model that waits; like wishes share the search."""
        sites: dict[tuple[Accelerator, Needs], tuple[Site, ...]] = {}
        found: dict[tuple[object, ...], Options] = {}
        for model in self._waiting:
            wish = model.wish
            place = wish.accelerator, wish.needs
            if place not in sites:
                sites[place] = self._ground.sites(*place)
            like = (
                wish.facts and wish.facts.digest,
                wish.key if wish.measured is not None else None,
                wish.demand,
                wish.explicit,
                wish.objective,
                place,
                wish.one_pod_only,
            )
            if like not in found:
                found[like] = options_of(wish, sites[place])
            model.options = found[like]

    def _answer(self) -> Plan:
        scarcity = Scarcity(self._fleet, self._stock(), self._placed_now())
        answers = []
        position = 0
        for model in sorted(self._models, key=_next_served):
            if model.missing <= 0:
                _retire_all_if_recreated(model)
            refusal = refuse(model, scarcity) if model.missing > 0 else None
            waits = refusal is not None and refusal.waits
            position += waits
            answers.append(
                ModelPlan(
                    key=model.key,
                    wanted=model.wish.replicas,
                    replicas=self._replicas(model),
                    retire=tuple(model.retire),
                    refusal=refusal,
                    position=position if waits else None,
                )
            )
        return Plan(tuple(sorted(answers, key=lambda each: each.key)))

    def _placed_now(self) -> dict[tuple[ModelKey, str], int]:
        """GPUs that models have by their plan and that no pod holds yet, by product."""
        placed: Counter[tuple[ModelKey, str]] = Counter()
        for model in self._models:
            for replica in model.promised:
                placed[model.key, replica.layout.product] += replica.layout.gpus
            for placement in model.placements:
                placed[model.key, placement.option.site.product] += placement.option.cut.gpus
            for replica in model.wish.leaving:
                # Its pods hold what the new replica was promised: that is told once.
                placed[model.key, replica.layout.product] -= sum(pod.gpus for pod in replica.pods)
        return +placed

    def _replicas(self, model: Holdings) -> tuple[ReplicaPlan, ...]:
        if not model.placements:
            return tuple(sorted(model.kept, key=by_index))
        wish = model.wish
        taken = {replica.index for replica in (*model.kept, *wish.standing, *wish.outgoing, *wish.leaving)}
        assert model.options is not None, "a placement is one of the options"
        new = replica_plans(wish, model.options, model.placements, taken, self._before)
        return tuple(sorted([*model.kept, *new], key=by_index))


def _next_served(model: Holdings) -> tuple[int, bool, tuple[int, str, ModelKey]]:
    """The order of the queue: priority, then who has nothing yet, then age."""
    return (-model.wish.priority, bool(model.kept or model.placements), model.order)
