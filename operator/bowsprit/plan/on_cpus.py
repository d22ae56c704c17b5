"""Models that run on CPUs: no GPU is counted, and kube-scheduler chooses the nodes.

What bounds a pod is then CPU and memory, which it states as requests; the scheduler reckons with these better
than a plan could. So only the number of replicas and their cut is planned: one pod for each pipeline stage.
"""

from __future__ import annotations

from itertools import count, islice

from bowsprit.api.reasons import Reason
from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan.holdings import Holdings, by_index
from bowsprit.plan.layout import Shape, partition
from bowsprit.plan.result import CPU, Layout, ModelPlan, PodPlan, Refusal, ReplicaPlan
from bowsprit.plan.wish import Wish

_WHY = (
    "On CPUs each pipeline stage is a pod of its own, and the scheduler chooses the nodes by their requests."
)


def on_cpus(wish: Wish) -> bool:
    return wish.accelerator.resource == CPU


def plan_on_cpus(wish: Wish) -> ModelPlan:
    """What stands stays. Whether there is room beside old replicas is not known here, so they go first unless
    the rollout is to be a Surge."""
    model = Holdings(wish)
    model.retire_replaced()
    refusal = _refusal(wish) if model.missing > 0 else None
    if wish.rollout is RolloutMode.RECREATE or (model.missing > 0 and wish.rollout is RolloutMode.AUTO):
        model.give_up([] if refusal else model.outgoing)
    new = [] if refusal else _replicas(model)
    return ModelPlan(
        key=wish.key,
        wanted=wish.replicas,
        replicas=tuple(sorted([*model.kept, *new], key=by_index)),
        retire=tuple(model.retire),
        refusal=refusal,
    )


def _replicas(model: Holdings) -> list[ReplicaPlan]:
    """Those that are missing, without nodes."""
    if model.missing <= 0:
        return []
    wish = model.wish
    taken = {replica.index for replica in (*model.kept, *wish.standing, *wish.outgoing, *wish.leaving)}
    layout = _layout(wish)
    free = (index for index in count() if index not in taken)
    pods = (PodPlan("", 1),) * layout.pods
    return [ReplicaPlan(index, layout, pods, why=_WHY) for index in islice(free, model.missing)]


def _layout(wish: Wish) -> Layout:
    stages = wish.explicit.stages or 1
    layers = wish.explicit.layer_partition or ()
    if not layers and wish.facts is not None:
        layers = partition(Shape(wish.facts.digest, wish.facts), wish.demand, 1, stages)
    return Layout(CPU, tensor=1, pipeline=stages, gpus_per_pod=1, layer_partition=layers)


def _refusal(wish: Wish) -> Refusal | None:
    stages, facts = wish.explicit.stages or 1, wish.facts
    if facts is not None and stages > 1 and not facts.stageable:
        message = (
            f"{facts.architecture} cannot be split into pipeline stages: leave spec.parallelism.pipeline out"
        )
        return Refusal(Reason.LAYOUT_REFUSED, message, waits=False)
    if facts is not None and stages > len(facts.layers):
        message = f"{stages} pipeline stages and {len(facts.layers)} layers: ask for fewer stages"
        return Refusal(Reason.LAYOUT_REFUSED, message, waits=False)
    if stages > 1 and wish.one_pod_only:
        message = (
            f"replicas of {stages} pods need LeaderWorkerSet (leaderworkerset.x-k8s.io/v1), which is not "
            "installed: install it (https://lws.sigs.k8s.io/docs/installation), or leave "
            "spec.parallelism.pipeline out"
        )
        return Refusal(Reason.LWS_NOT_INSTALLED, message)
    return None
