"""From a placement to a ReplicaPlan: pods in rank order, the layer split, the memory of every stage."""

from __future__ import annotations

from math import gcd

from bowsprit.plan.ask import Placement
from bowsprit.plan.ground import Ground
from bowsprit.plan.layout import Shape, partition, stage_budget
from bowsprit.plan.options import Options
from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan, Stage
from bowsprit.plan.why import why
from bowsprit.plan.wish import Wish


def replica_plan(
    wish: Wish, options: Options, placement: Placement, index: int, ground: Ground, largest_free: int
) -> ReplicaPlan:
    """`largest_free` is the largest free piece of the site before this pass; it is for the words only.

    Pods are as large as the split over nodes allows: the greatest common divisor of the GPUs on each node,
    because all pods of a group must hold the same number of ranks. Tensor ranks never leave a pod, since
    every node holds whole stages.
    """
    option = placement.option
    cut = option.cut
    if wish.explicit.gpus_per_pod is not None:
        pod_gpus = cut.pod_gpus
    else:
        pod_gpus = gcd(*(gpus for _, gpus in placement.nodes))
    pods = tuple(
        PodPlan(ground.nodes[position].name, pod_gpus)
        for position, gpus in placement.nodes
        for _ in range(gpus // pod_gpus)
    )
    split = wish.explicit.layer_partition or ()
    stages: tuple[Stage, ...] = ()
    if wish.facts is not None:
        shape = Shape(wish.facts.digest, wish.facts)
        split = split or partition(shape, wish.demand, cut.tensor, cut.pipeline)
        if wish.measured is None:
            stages = stage_budget(shape, wish.demand, cut.tensor, split, option.site.memory_mib)
    return ReplicaPlan(
        index=index,
        layout=Layout(option.site.product, cut.tensor, cut.pipeline, pod_gpus, split),
        pods=pods,
        stages=stages,
        why=why(wish, options, placement, ground, largest_free),
    )
