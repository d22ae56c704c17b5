"""Which layout a model gets, and the memory that decides it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.api.scheduling import Objective
from bowsprit.facts.model import Divisor
from bowsprit.plan.divide import tensor_fault
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.memory import GIB, Costs, context_fits, costs
from bowsprit.plan.partition import balanced, fewest_stages, fullest
from bowsprit.plan.planner import plan
from bowsprit.plan.wish import Accelerator, Demand, ExplicitLayout
from tests.unit.plan.examples import LLAMA_8B, LLAMA_70B, PCIE, SXM, fleet, layouts, measured, node, wish


def layout_of(one, on):
    return plan([one], on).models[0].replicas[0].layout


@pytest.mark.parametrize(
    ("product", "expected"), [(PCIE, "tp1/pp4"), (SXM, "tp4/pp1")], ids=["stages on PCIe", "tensor on NVLink"]
)
def test_for_equal_gpus_links_decide(product, expected):
    assert (
        str(layout_of(measured("m", (1, 4), (2, 2), (4, 1), product=product), fleet(4, product=product)))
        == expected
    )


def test_fewer_gpus_go_before_the_better_layout():
    assert str(layout_of(measured("m", (1, 3), (4, 1), product=SXM), fleet(4, product=SXM))) == "tp1/pp3"


def test_latency_takes_one_node_and_the_largest_tensor_size_at_the_price_of_gpus():
    one = wish("m", LLAMA_8B, demand=Demand(8192), objective=Objective.MINIMIZE_LATENCY)
    assert str(layout_of(one, fleet(8, product=SXM))) == "tp8/pp1"
    assert str(layout_of(one, fleet(8))) == "tp8/pp1"
    assert str(layout_of(one, fleet(3, total=8))) == "tp2/pp1"


def test_the_users_word_lets_the_context_grow_beyond_the_models():
    asked = Demand(262144, beyond_max_model_len=True)
    assert layout_of(wish("m", LLAMA_8B, demand=asked), fleet(8)).gpus == 1


@pytest.mark.parametrize("one_stage", ["m", "measured"])
def test_a_class_that_cannot_be_split_gets_tensor_ranks_alone(one_stage):
    whole = replace(LLAMA_70B, stageable=False, digest="whole")
    table = {"measured": measured("m", (1, 3), (4, 1)).measured, "m": None}[one_stage]
    asked = wish("m", whole, demand=Demand(65536), measured=table)
    assert str(layout_of(asked, fleet(8))) == "tp4/pp1"


def test_latency_asks_for_one_node_before_it_asks_for_few_stages():
    one = measured("m", (4, 3), (1, 8), objective=Objective.MINIMIZE_LATENCY)
    assert str(layout_of(one, fleet(8, 8))) == "tp1/pp8"


def test_nccl_takes_memory_beside_the_engine_only_from_ranks_with_peers():
    on, demand = 10240, Demand(utilization=0.92)
    assert (context_fits(on, demand, gpus=1), context_fits(on, demand, gpus=2)) == (True, False)


def test_one_gpu_type_is_planned_with_the_least_memory_of_its_nodes():
    small, large = (Fleet((node("a", memory_mib=mib), node("b"))) for mib in (40960, 81920))
    one = wish("m", LLAMA_70B, demand=Demand(8192))
    assert layout_of(one, small).gpus > layout_of(one, large).gpus


def test_a_selector_that_leaves_the_small_node_out_leaves_its_memory_out_too():
    on = Fleet((node("a", memory_mib=40960), node("b", labels={"size": "80"})))
    one = wish("m", LLAMA_70B, demand=Demand(8192), accelerator=Accelerator(node_selector=(("size", "80"),)))
    replica = plan([one], on).models[0].replicas[0]
    assert {pod.node for pod in replica.pods} == {"b"}
    assert replica.stages[0].capacity_gib == pytest.approx(73.6)


def test_explicit_fields_win():
    explicit = ExplicitLayout(tensor=2, pipeline=2, gpus_per_pod=2, layer_partition=(10, 22))
    layout = layout_of(wish("m", LLAMA_8B, demand=Demand(8192), explicit=explicit), fleet(8))
    assert (layout.tensor, layout.pipeline, layout.gpus_per_pod, layout.layer_partition) == (
        2,
        2,
        2,
        (10, 22),
    )


def test_parallelism_wins_over_a_measured_table():
    one = replace(measured("m", (1, 5)), explicit=ExplicitLayout(tensor=2, pipeline=2))
    assert str(layout_of(one, fleet(8))) == "tp2/pp2"


def test_replicas_of_one_model_may_differ():
    answer = plan(
        [measured("m", (1, 4), (4, 1), replicas=2, product=SXM)], fleet(4, 2, 2, total=8, product=SXM)
    )
    assert layouts(answer) == {"m": ["tp4/pp1", "tp1/pp4"]}


@pytest.mark.parametrize(
    ("change", "tensor", "words"),
    [
        ({"heads": 48}, 5, "48 attention heads do not divide by 5"),
        ({"heads": 24, "kv_heads": 8}, 6, "8 KV heads do not divide by 6"),
        ({"heads": 24, "kv_heads": 8}, 12, "8 KV heads cannot be repeated evenly over 12 ranks"),
        ({"kv_heads": 2, "kv_replicable": False}, 4, "2 KV heads do not divide by 4"),
        ({"kv_heads": 2}, 4, None),
        (
            {"divisors": (Divisor("moe_intermediate_size", 1536, 128),)},
            8,
            "moe_intermediate_size 1536 does not divide by 8",
        ),
        ({"divisors": (Divisor("moe_intermediate_size", 1536, 128),)}, 4, None),
    ],
)
def test_a_tensor_size_must_divide_what_vllm_divides(change, tensor, words):
    fault = tensor_fault(replace(LLAMA_8B, **change), tensor, expert_parallel=False)
    assert (fault or "").startswith(words) if words else fault is None


def test_tied_embeddings_are_on_both_ends_only_when_these_are_different_stages():
    tied = replace(LLAMA_8B, tied=True, digest="tied")
    cost = costs(tied, Demand(8192), 1, 2)
    assert cost.first == cost.last == tied.embedding_bytes
    assert cost.last_alone == 0


def test_what_vllm_builds_on_every_stage_is_counted_on_every_stage():
    everywhere = replace(
        LLAMA_8B, embedding_on_every_stage=True, head_on_every_stage=True, rank_bytes=7, digest="x"
    )
    once, each = (costs(facts, Demand(8192), 2, 4) for facts in (LLAMA_8B, everywhere))
    assert (each.first, each.last, each.last_alone) == (0, 0, 0)
    assert each.everywhere - once.everywhere == (LLAMA_8B.embedding_bytes + LLAMA_8B.head_bytes) / 2 + 7


SIZES = st.lists(st.floats(0.1, 10), min_size=1, max_size=9)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(SIZES, st.floats(0, 8), st.floats(0, 8), st.integers(1, 9))
def test_the_balanced_split_has_the_least_fullest_stage_of_all_splits(layers, first, last, stages):
    stages = min(stages, len(layers))
    cost = Costs(tuple(layers), first, last, last, 1.0)
    ends = range(1, len(layers))
    splits = [
        tuple(b - a for a, b in zip((0, *cut), (*cut, len(layers)), strict=True))
        for cut in combinations(ends, stages - 1)
    ]
    best = min(fullest(cost, split) for split in splits)
    assert fullest(cost, balanced(cost, stages)) == pytest.approx(best)
    need = fewest_stages(cost, best * (1 + 1e-9))
    assert need is not None
    assert need <= stages


def test_equal_layers_give_the_lighter_ends_fewer_of_them():
    cost = Costs((1.0,) * 56, 0.4, 0.4, 0.4, 3 * GIB)
    assert balanced(cost, 5) == (11, 12, 11, 11, 11)
