"""Models and fleets that the planning tests share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bowsprit.facts.model import ModelFacts
from bowsprit.plan.fleet import Fleet, GpuNode
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import Plan
from bowsprit.plan.wish import Demand, MeasuredLayout, Wish
from tests.models import transformer

PCIE = "NVIDIA-A100-80GB-PCIe"
SXM = "NVIDIA-A100-SXM4-80GB"


LLAMA_8B = transformer("Llama8B", layers=32, hidden=4096, inner=14336, heads=32, vocabulary=128256)
LLAMA_70B = transformer("Llama70B", layers=80, hidden=8192, inner=28672, heads=64, vocabulary=128256)
MIXTRAL = transformer(
    "Mixtral", layers=56, hidden=6144, inner=16384, heads=48, vocabulary=32768, experts=8, active=2
)
DBRX = transformer(
    "Dbrx", layers=40, hidden=6144, inner=10752, heads=48, vocabulary=100352, experts=16, active=4
)


def wish(name: str, facts: ModelFacts | None = None, replicas: int = 1, **more) -> Wish:
    return Wish(ModelKey("default", name), more.pop("created", name), replicas, facts, **more)


def measured(name: str, *rows: tuple[int, int], replicas: int = 1, product: str = PCIE, **more) -> Wish:
    """A wish whose layouts are (tensor, fewest stages)."""
    table = {product: tuple(MeasuredLayout(tensor, stages) for tensor, stages in rows)}
    return wish(name, None, replicas, measured=table, **more)


def node(name: str, free: int = 8, total: int = 8, product: str = PCIE, **more) -> GpuNode:
    more.setdefault("linked", product == SXM)
    return GpuNode(
        name, "nvidia.com/gpu", product, more.pop("memory_mib", 81920), total=total, free=free, **more
    )


def fleet(*free: int, total: int | None = None, product: str = PCIE) -> Fleet:
    """Nodes a, b, c … with so many GPUs free; wholly free unless `total` says more."""
    names = "abcdefghijklmnopqrstuvwxyz"
    return Fleet(tuple(node(names[i], size, total or size, product) for i, size in enumerate(free)))


def twelve_gpu_wishes() -> list[Wish]:
    return [
        wish("llama", LLAMA_70B, demand=Demand(65536, 1)),
        wish("mixtral", MIXTRAL, demand=Demand(65536, 4)),
        wish("dbrx", DBRX, demand=Demand(32768, 1)),
    ]


def layouts(plan: Plan) -> dict[str, list[str]]:
    return {model.key.name: [str(replica.layout) for replica in model.replicas] for model in plan.models}


def used(plan: Plan) -> Counter[str]:
    """GPUs by node that the plan's replicas hold."""
    held: Counter[str] = Counter()
    for model in plan.models:
        for replica in model.replicas:
            for pod in replica.pods:
                held[pod.node] += pod.gpus
    return held


def promised(wishes: Sequence[Wish], plan: Plan) -> list[Wish]:
    return [replace(each, promised=plan.by_key[each.key].replicas) for each in wishes]


def stood(wishes: Sequence[Wish], on: Fleet, plan: Plan) -> tuple[list[Wish], Fleet]:
    """The same cluster after the whole plan stands."""
    held = used(plan)
    nodes = tuple(replace(each, free=each.free - held[each.name]) for each in on.nodes)
    after = [replace(each, standing=plan.by_key[each.key].replicas, promised=()) for each in wishes]
    return after, replace(on, nodes=nodes)
