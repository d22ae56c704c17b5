"""The reference: a plain greedy planner. Each model in turn takes its cheapest layout that has room, each
pod on the first node that has it. No looking ahead, no balance, no words."""

from __future__ import annotations

from collections.abc import Sequence

from bowsprit.plan.fleet import Fleet, GpuNode
from bowsprit.plan.ground import survey
from bowsprit.plan.options import options_of
from bowsprit.plan.result import Layout, ModelPlan, Plan, PodPlan, ReplicaPlan
from bowsprit.plan.wish import Wish


def greedy_plan(wishes: Sequence[Wish], fleet: Fleet) -> Plan:
    ground = survey(fleet.nodes, [wish.accelerator for wish in wishes])
    free = {node.name: node.free for node in ground.nodes}
    models = []
    for wish in sorted(wishes, key=lambda wish: (-wish.priority, wish.created, wish.key)):
        replicas = []
        options = options_of(wish, ground.sites(wish.accelerator)).options
        for index in range(wish.replicas):
            for option in options:
                cut = option.cut
                nodes = [node for kind in option.site.kinds for node in _nodes(ground, kind)]
                pods = _first_fit(nodes, free, cut.pod_gpus, cut.pods)
                if pods is not None:
                    layout = Layout(option.site.product, cut.tensor, cut.pipeline, cut.pod_gpus, ())
                    replicas.append(ReplicaPlan(index, layout, pods))
                    break
        models.append(ModelPlan(wish.key, wish.replicas, tuple(replicas)))
    return Plan(tuple(sorted(models, key=lambda model: model.key)))


def _nodes(ground, kind: int) -> list[GpuNode]:
    return [ground.nodes[position] for position in ground.kinds[kind].nodes]


def _first_fit(
    nodes: Sequence[GpuNode], free: dict[str, int], size: int, count: int
) -> tuple[PodPlan, ...] | None:
    pods: list[PodPlan] = []
    for node in nodes:
        while len(pods) < count and free[node.name] >= size:
            free[node.name] -= size
            pods.append(PodPlan(node.name, size))
        if len(pods) == count:
            return tuple(pods)
    for pod in pods:
        free[pod.node] += pod.gpus
    return None
