"""Tensor sizes that divide nothing, for classes that pad: how much memory, which size, where the pods go."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bench.clusters import Case
from bench.exact import optimum, score_of
from bench.packing_quality import faults
from bowsprit.facts.model import Divisor
from bowsprit.plan.cache import cache
from bowsprit.plan.divide import rank_share
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.memory import costs
from bowsprit.plan.planner import plan
from bowsprit.plan.wish import Demand, ExplicitLayout
from tests.unit.plan.examples import LLAMA_8B, LLAMA_70B, PCIE, SXM, fleet, layouts, measured, node, wish

FOUR_HEADS = replace(
    LLAMA_8B, heads=4, kv_heads=2, divisors=(Divisor("intermediate_size", 14336),), digest="four"
)

SHARES = {
    "what divides is split evenly": (LLAMA_8B, 4, 1 / 4),
    "heads stay with their KV head": (LLAMA_8B, 3, 12 / 32),
    "four heads over three": (FOUR_HEADS, 3, 2 / 4),
    "more ranks than KV heads that divide": (FOUR_HEADS, 4, 1 / 4),
    "more ranks than KV heads that do not": (FOUR_HEADS, 5, 2 / 4),
    "a width in slices": (
        replace(LLAMA_8B, heads=30, kv_heads=3, divisors=(Divisor("intermediate_size", 1536, 128),)),
        5,
        10 / 30,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "tensor", "share"), SHARES.values(), ids=SHARES)
def test_a_rank_holds_its_share_of_the_padded_dimensions(facts, tensor, share):
    assert rank_share(facts, tensor, expert_parallel=False) == pytest.approx(share)


def test_padding_is_paid_in_weights_and_cache():
    demand = Demand(8192, uneven_tensor=True)
    even, padded = (costs(LLAMA_8B, demand, tensor, 1) for tensor in (4, 3))
    assert sum(padded.layers) > 4 / 3 * sum(even.layers)
    kv = LLAMA_8B.layers[0].kv
    one = cache(LLAMA_8B, demand, 8, 1).layers[0]
    assert cache(LLAMA_8B, demand, 3, 1).layers[0] == 3 * one
    assert kv.kv_heads == 8


def test_three_gpus_hold_a_model_that_four_hold_evenly():
    """131 GiB of weights and 20 GiB of cache on 3 x 73.6 GiB, padded to nine eighths."""
    on = fleet(3, product=SXM)
    demand = Demand(65536, uneven_tensor=True)
    answer = plan([wish("m", LLAMA_70B, demand=demand, explicit=ExplicitLayout(pipeline=1))], on)
    assert layouts(answer) == {"m": ["tp3/pp1"]}
    assert "with what does not divide padded" in answer.models[0].replicas[0].why
    refused = plan([wish("m", LLAMA_70B, demand=replace(demand, uneven_tensor=False),
                         explicit=ExplicitLayout(pipeline=1))], on)  # fmt: skip
    assert not refused.models[0].placed


def test_a_size_that_divides_goes_first_at_equal_gpus():
    """tp=3 and tp=1, pp=3 take three GPUs each: the one that divides serves better, linked or not."""
    demand = Demand(65536, uneven_tensor=True)
    for product in (PCIE, SXM):
        answer = plan([wish("m", LLAMA_70B, demand=demand)], fleet(8, product=product))
        assert layouts(answer) == {"m": ["tp1/pp3"]}


def test_an_explicit_size_that_does_not_divide_is_taken():
    asked = ExplicitLayout(tensor=5)
    answer = plan([wish("m", LLAMA_8B, demand=Demand(8192, uneven_tensor=True), explicit=asked)], fleet(8))
    assert layouts(answer) == {"m": ["tp5/pp1"]}


def uneven(number: int) -> Case:
    """Tables with sizes that do not divide each other, on nodes of 3, 4 and 8 GPUs."""
    random = Random(number)
    nodes = []
    for index in range(random.randint(2, 5)):
        total = random.choice((3, 4, 8))
        nodes.append(node(f"node-{index}", random.choice((total, random.randint(0, total))), total))
    wishes = [
        measured(
            f"model-{index}",
            *sorted({(tensor, random.choice((1, 1, 2))) for tensor in random.sample((1, 2, 3, 5, 6, 7), 2)}),
            replicas=random.choice((1, 1, 2)),
            priority=random.choice((0, 0, 10)),
        )
        for index in range(random.randint(2, 5))
    ]
    return Case(f"uneven-{number}", tuple(wishes), Fleet(tuple(nodes)))


@pytest.mark.parametrize("number", range(24))
def test_pods_of_any_sizes_are_placed_as_well_as_can_be(number):
    one = uneven(number)
    answer = plan(one.wishes, one.fleet)
    assert faults(one, answer) == []
    best, score = optimum(one), score_of(one, answer)
    assert (score.placed, score.gpus) == (best.placed, best.gpus)
