"""Small random clusters with wishes, for comparing the planner with exact solvers.

Four families: exact fits (the demand is carved out of the nodes), fragmented (nodes partly used), scarce
(more is wanted than there is, with priorities), and mixed (several GPU types, linked and not). Layouts come
from measured tables, so that a solver needs no memory model."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from bowsprit.plan.fleet import Fleet, GpuNode
from bowsprit.plan.key import ModelKey
from bowsprit.plan.wish import MeasuredLayout, Wish

FAMILIES = ("exact", "fragmented", "scarce", "mixed")
PRODUCTS = ("NVIDIA-A100-80GB-PCIe", "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    wishes: tuple[Wish, ...]
    fleet: Fleet


def case(number: int) -> Case:
    """The same number always gives the same case."""
    random = Random(number)
    family = FAMILIES[number % len(FAMILIES)]
    products = PRODUCTS[: random.choice((2, 3))] if family == "mixed" else PRODUCTS[:1]
    linked = {product: random.random() < 0.5 for product in products}
    nodes = tuple(
        _node(random, family, index, random.choice(products), linked) for index in range(random.randint(2, 6))
    )
    if family == "exact":
        wishes = _carved(random, nodes)
    else:
        count = random.randint(4, 9) if family == "scarce" else random.randint(2, 6)
        wishes = tuple(_wish(random, family, index, products) for index in range(count))
    return Case(f"{family}-{number}", wishes, Fleet(nodes))


def _node(random: Random, family: str, index: int, product: str, linked: dict[str, bool]) -> GpuNode:
    total = random.choice((4, 8)) if family == "mixed" else 8 if random.random() < 0.5 else 4
    used = random.randint(0, total) if family == "fragmented" or random.random() < 0.3 else 0
    free = total if family == "exact" else total - used
    return GpuNode(f"node-{index}", "nvidia.com/gpu", product, 81920, linked[product], total, free)


def _wish(random: Random, family: str, index: int, products: tuple[str, ...]) -> Wish:
    size = random.choice((1, 2, 3, 4, 5, 6, 8))
    priority = random.choice((0, 0, 10)) if family == "scarce" else 0
    replicas = random.choice((1, 1, 2, 3)) if size < 5 else 1
    table = {product: _table(random, max(1, size + random.choice((-1, 0, 0, 1)))) for product in products}
    return _measured(index, priority, replicas, table)


def _table(random: Random, least: int) -> tuple[MeasuredLayout, ...]:
    """Rows for the tensor sizes that divide: the GPUs of a row are at least the least, rounded up to whole
    stages, sometimes with one stage more than that."""
    largest = random.choice((1, 2, 4, 8))
    return tuple(
        MeasuredLayout(tensor, -(-least // tensor) + (random.random() < 0.15))
        for tensor in (1, 2, 4, 8)
        if tensor <= largest and tensor < 2 * least
    )


def _carved(random: Random, nodes: tuple[GpuNode, ...]) -> tuple[Wish, ...]:
    """Models that together take every GPU of the nodes, as in three models on exactly twelve."""
    rest = sum(node.free for node in nodes)
    wishes: list[Wish] = []
    while rest:
        least = min(rest, random.choice((1, 2, 3, 4, 5, 5, 7, 8)))
        rest -= least
        table = {
            nodes[0].product: tuple(
                row for row in _table(random, least) if row.tensor == 1 or least % row.tensor == 0
            )
        }
        wishes.append(_measured(len(wishes), 0, 1, table))
    return tuple(wishes)


def _measured(index: int, priority: int, replicas: int, table: dict[str, tuple[MeasuredLayout, ...]]) -> Wish:
    return Wish(
        key=ModelKey("bench", f"model-{index}"),
        created=f"2026-01-01T00:00:{index:02d}Z",
        replicas=replicas,
        facts=None,
        priority=priority,
        measured=table,
    )
