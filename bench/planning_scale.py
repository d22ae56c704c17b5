"""Planning time at 5,000 nodes of 8 GPUs and 1,000 models, beside a plain greedy in the same run.

Targets: from nothing under 1 s; with everything standing and one model changed, under 50 ms for the whole
call. Caches of the memory model are cleared before the first measurement."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace
from random import Random
from time import perf_counter

from bench.figure import Figure
from bench.greedy import greedy_plan
from bowsprit.facts.model import ModelFacts
from bowsprit.plan import layout
from bowsprit.plan.fleet import Fleet, GpuNode
from bowsprit.plan.key import ModelKey
from bowsprit.plan.planner import plan
from bowsprit.plan.result import Plan
from bowsprit.plan.wish import Demand, Wish
from tests.models import transformer

NODES = 5000
MODELS = 1000
RUNS = 5

# layers, hidden, inner, heads, KV heads, vocabulary, experts, active ones
SHAPES = (
    (32, 4096, 14336, 32, 8, 128256, 0, 1),
    (80, 8192, 28672, 64, 8, 128256, 0, 1),
    (126, 16384, 53248, 128, 8, 128256, 0, 1),
    (56, 6144, 16384, 48, 8, 32768, 8, 2),
    (32, 4096, 14336, 32, 8, 32000, 8, 2),
    (40, 6144, 10752, 48, 8, 100352, 16, 4),
    (64, 5120, 27648, 40, 8, 152064, 0, 1),
    (28, 3584, 18944, 28, 4, 152064, 0, 1),
    (48, 5120, 13824, 40, 8, 152064, 0, 1),
    (42, 3584, 14336, 16, 8, 256000, 0, 1),
)


def facts(number: int) -> ModelFacts:
    layers, hidden, inner, heads, kv_heads, vocabulary, experts, active = SHAPES[number % len(SHAPES)]
    return transformer(
        f"Shape{number % len(SHAPES)}",
        layers=layers,
        hidden=hidden,
        inner=inner,
        heads=heads,
        vocabulary=vocabulary,
        kv_heads=kv_heads,
        experts=experts,
        active=active,
    )


def fleet() -> Fleet:
    products = (("NVIDIA-A100-80GB-PCIe", 81920, False), ("NVIDIA-H100-80GB-HBM3", 81559, True))
    nodes = []
    for index in range(NODES):
        product, memory, linked = products[index % 2]
        labels = {"kubernetes.io/hostname": f"node-{index:05d}", "nvidia.com/gpu.product": product}
        nodes.append(GpuNode(f"node-{index:05d}", "nvidia.com/gpu", product, memory, linked, 8, 8, labels))
    return Fleet(tuple(nodes))


def wishes(scale: int) -> list[Wish]:
    """`scale` multiplies the replicas: 1 fills about two thirds of the fleet."""
    random = Random(1)
    return [
        Wish(
            key=ModelKey(f"team-{index % 20}", f"model-{index:04d}"),
            created=f"2026-01-01T00:{index // 60:02d}:{index % 60:02d}Z",
            replicas=scale * random.randint(1, 14),
            facts=facts(random.randrange(len(SHAPES))),
            demand=Demand(
                max_model_len=random.choice((8192, 32768, 65536)), concurrency=random.choice((1, 4, 8))
            ),
            priority=random.choice((0, 0, 0, 10)),
        )
        for index in range(MODELS)
    ]


def stood(asked: list[Wish], on: Fleet, answer: Plan) -> tuple[list[Wish], Fleet]:
    """The same cluster after all of the plan stands."""
    held: Counter[str] = Counter()
    for model in answer.models:
        for replica in model.replicas:
            for pod in replica.pods:
                held[pod.node] += pod.gpus
    nodes = tuple(replace(node, free=node.free - held[node.name]) for node in on.nodes)
    after = [replace(wish, standing=answer.by_key[wish.key].replicas, ready=wish.replicas) for wish in asked]
    return after, replace(on, nodes=nodes)


def measure() -> list[Figure]:
    nodes = fleet()
    figures = []
    asked = wishes(1)
    first, answer = _timed(asked, nodes, fresh=True)
    start = perf_counter()
    greedy_plan(asked, nodes)
    greedy = perf_counter() - start
    gpus = sum(replica.layout.gpus for model in answer.models for replica in model.replicas)
    count = sum(len(model.replicas) for model in answer.models)
    placed = f"s: {MODELS:,} models, {count:,} replicas on {gpus:,} of {8 * NODES:,} GPUs"
    figures.append(
        Figure("plan from nothing", first, placed, "under 1 s", first < 1, f"greedy {greedy:.2f} s")
    )
    after, later = stood(asked, nodes, answer)
    after[500] = replace(after[500], replicas=after[500].replicas + 1)
    change = min(_timed(after, later)[0] for _ in range(RUNS))
    figures.append(
        Figure(
            "plan with all standing and one more replica", 1000 * change, "ms", "under 50 ms", change < 0.05
        )
    )
    idle = [*after]
    idle[500] = replace(idle[500], replicas=idle[500].replicas - 1)
    figures.append(
        Figure(
            "plan with nothing to do", 1000 * min(_timed(idle, later)[0] for _ in range(RUNS)), "ms", "", None
        )
    )
    scarce, answer = _timed(wishes(3), nodes)
    unplaced = sum(not model.placed for model in answer.models)
    figures.append(
        Figure("plan from nothing when GPUs are scarce", scarce, f"s: {unplaced} models wait", "", None)
    )
    return figures


def _timed(asked: list[Wish], nodes: Fleet, *, fresh: bool = False) -> tuple[float, Plan]:
    if fresh:
        for cached in (layout.candidates, layout.partition, layout.stage_budget):
            cached.cache_clear()
    gc.collect()
    start = perf_counter()
    answer = plan(asked, nodes)
    return perf_counter() - start, answer
