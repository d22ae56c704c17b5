"""From placements to ReplicaPlans: pods in rank order, the layer split, the memory of every stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from bowsprit.plan.ask import Option, Placement
from bowsprit.plan.ground import Stock
from bowsprit.plan.layout import Shape, partition, stage_budget
from bowsprit.plan.options import Options
from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan, Stage
from bowsprit.plan.why import layout_words, why
from bowsprit.plan.wish import Wish


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What all replicas of one option share."""

    layers: tuple[int, ...]
    stages: tuple[Stage, ...]
    words: str
    largest_free: int
    """The largest free piece of the site before this pass."""
    uncounted: tuple[str, ...]


def replica_plans(
    wish: Wish, options: Options, placements: Iterable[Placement], taken: set[int], before: Stock
) -> list[ReplicaPlan]:
    """New replicas, under the lowest indexes that are not `taken`; `before` is what was free."""
    drawn: dict[Option, _Drawn] = {}
    plans = []
    for index, placement in zip(_unused(taken), placements, strict=False):
        option = placement.option
        if option not in drawn:
            drawn[option] = _draw(wish, options, option, before)
        plans.append(_replica_plan(placement, index, drawn[option], before))
    return plans


def _unused(taken: set[int]) -> Iterator[int]:
    return (index for index in count() if index not in taken)


def _draw(wish: Wish, options: Options, option: Option, before: Stock) -> _Drawn:
    cut = option.cut
    layers = wish.explicit.layer_partition or ()
    stages: tuple[Stage, ...] = ()
    if wish.facts is not None:
        shape = Shape(wish.facts.digest, wish.facts)
        layers = layers or partition(shape, wish.demand, cut.tensor, cut.pipeline)
        if wish.measured is None:
            stages = stage_budget(shape, wish.demand, cut.tensor, layers, option.site.memory_mib)
    largest = max(before.sizes(option.site.kinds), default=0)
    return _Drawn(layers, stages, layout_words(wish, options, option), largest, wish.uncounted)


def _replica_plan(placement: Placement, index: int, drawn: _Drawn, before: Stock) -> ReplicaPlan:
    cut, pod_gpus = placement.option.cut, placement.pod_gpus
    nodes = before.ground.nodes
    return ReplicaPlan(
        index=index,
        layout=Layout(placement.option.site.product, cut.tensor, cut.pipeline, pod_gpus, drawn.layers),
        pods=tuple(
            PodPlan(nodes[position].name, pod_gpus, placement.option.needs)
            for position, gpus in placement.nodes
            for _ in range(gpus // pod_gpus)
        ),
        stages=drawn.stages,
        why=" ".join([why(drawn.words, placement, before.ground, drawn.largest_free), *drawn.uncounted]),
    )
