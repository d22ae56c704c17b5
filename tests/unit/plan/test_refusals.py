"""Every refusal: its reason, its numbers, its words, and whether waiting helps."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bowsprit.plan.fleet import Fleet, Holder, LeftOut, Taint
from bowsprit.plan.planner import plan
from bowsprit.plan.wish import Accelerator, Demand, ExplicitLayout
from tests.unit.plan.examples import (
    DBRX,
    LLAMA_8B,
    LLAMA_70B,
    MIXTRAL,
    PCIE,
    SXM,
    fleet,
    measured,
    node,
    promised,
    wish,
)


def refusal(one, on):
    return plan([one], on).models[0].refusal


@pytest.mark.parametrize(
    ("accelerator", "on", "words"),
    [
        (Accelerator(products=("NVIDIA-L4",)), fleet(8), f"1 node: {PCIE} is not among products NVIDIA-L4"),
        (Accelerator(resource="amd.com/gpu"), fleet(8), "1 node: offers nvidia.com/gpu"),
        (
            Accelerator(node_selector=(("zone", "b"),)),
            fleet(8),
            "label zone is absent, nodeSelector asks for b",
        ),
        (
            Accelerator(),
            Fleet((node("a", taints=(Taint("team", "red", "NoSchedule"),)),)),
            "team=red:NoSchedule is not",
        ),
        (
            Accelerator(),
            Fleet((), (LeftOut("a", "Cordoned", "", 8, PCIE),)),
            "Left out: a (Cordoned, 8 GPUs)",
        ),
    ],
    ids=["no such product", "other resource", "selector", "taint", "only a cordoned node"],
)
def test_no_node_may_serve_the_model(accelerator, on, words):
    answer = refusal(wish("m", LLAMA_8B, accelerator=accelerator), on)
    assert (answer.reason, answer.waits) == ("NoMatchingNodes", True)
    assert words in answer.message


@pytest.mark.parametrize(
    ("facts", "demand", "explicit", "words"),
    [
        (
            MIXTRAL,
            Demand(8192),
            ExplicitLayout(tensor=5),
            "spec.parallelism.tensor: 48 attention heads do not divide by 5",
        ),
        (MIXTRAL, Demand(8192), ExplicitLayout(tensor=6), "8 KV heads do not divide by 6"),
        (LLAMA_8B, Demand(8192), ExplicitLayout(pipeline=33), "33 stages are more than the 32 layers"),
        (LLAMA_8B, Demand(8192), ExplicitLayout(layer_partition=(16, 15)), "hold 31 layers"),
        (LLAMA_8B, Demand(8192), ExplicitLayout(layer_partition=(32, 0)), "every stage needs one"),
        (
            LLAMA_8B,
            Demand(8192),
            ExplicitLayout(pipeline=3, layer_partition=(16, 16)),
            "names 2 stages and pipeline is 3",
        ),
        (
            LLAMA_8B,
            Demand(8192),
            ExplicitLayout(tensor=2, gpus_per_pod=3),
            "3 is not a multiple of tensor 2; use 6",
        ),
        (
            LLAMA_8B,
            Demand(8192),
            ExplicitLayout(tensor=1, pipeline=4, gpus_per_pod=3),
            "pods of 3 do not divide the 4 GPUs",
        ),
        (
            LLAMA_70B,
            Demand(65536),
            ExplicitLayout(tensor=1, pipeline=2),
            "73.6 GiB may be used; pipeline 3 fits",
        ),
        (
            LLAMA_70B,
            Demand(65536),
            ExplicitLayout(tensor=1, layer_partition=(60, 10, 10)),
            "the even split 26,28,26 fits",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, ExplicitLayout) else "",
)
def test_an_explicit_layout_that_cannot_be_is_refused_with_the_nearest_that_works(
    facts, demand, explicit, words
):
    answer = refusal(wish("m", facts, demand=demand, explicit=explicit), fleet(8, 8))
    assert (answer.reason, answer.waits) == ("LayoutRefused", False)
    assert words in answer.message
    assert "The nearest that works: tensor " in answer.message


GEMMA_3N = replace(LLAMA_70B, architecture="Gemma3nForCausalLM", stageable=False, digest="3n")


@pytest.mark.parametrize(
    ("facts", "demand", "explicit", "reason", "words"),
    [
        (
            LLAMA_8B,
            Demand(131073),
            ExplicitLayout(),
            "InvalidSpec",
            "spec.capacity.maxModelLen: 131,073 tokens are more than the 131,072 that config.json allows",
        ),
        (
            LLAMA_8B,
            Demand(8192, expert_parallel=True),
            ExplicitLayout(),
            "LayoutRefused",
            "spec.parallelism.expert: Llama8BForCausalLM has no experts",
        ),
        (
            GEMMA_3N,
            Demand(8192),
            ExplicitLayout(pipeline=3),
            "LayoutRefused",
            "3 stages are asked for, and vLLM cannot split Gemma3nForCausalLM",
        ),
        (GEMMA_3N, Demand(8192), ExplicitLayout(layer_partition=(40, 40)), "LayoutRefused", "2 stages are"),
    ],
    ids=["a context beyond the model's", "experts of a dense model", "stages", "a layer partition"],
)
def test_what_vllm_would_refuse_with_gpus_in_hand_is_refused_before(facts, demand, explicit, reason, words):
    for on in (fleet(8, 8), Fleet(())):
        answer = refusal(wish("m", facts, demand=demand, explicit=explicit), on)
        assert (answer.reason, answer.waits) == (reason, False)
        assert words in answer.message


def test_a_class_that_cannot_be_split_into_stages_says_so_where_one_stage_is_too_small():
    answer = refusal(wish("m", GEMMA_3N, demand=Demand(131072)), fleet(1, 1))
    assert (answer.reason, answer.waits) == ("NoMatchingNodes", True)
    assert "Add a node with 4: " in answer.message
    assert "needs 3 stages with tp=1" in answer.message
    assert "and vLLM cannot split Gemma3nForCausalLM" in answer.message


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (
            wish("m", LLAMA_70B, explicit=ExplicitLayout(tensor=8), demand=Demand(8192)),
            "change spec.parallelism.tensor: the nearest that works now: tensor 4, pipeline 1 (4 GPUs of",
        ),
        (
            wish("m", LLAMA_70B, explicit=ExplicitLayout(tensor=1, gpus_per_pod=8), demand=Demand(8192)),
            "change spec.parallelism.gpusPerPod: the nearest that works now: tensor 1, pipeline 2 (",
        ),
        (measured("m", (8, 1)), "Or ask for a shorter maxModelLen"),
    ],
    ids=["by tensor", "by the user's pods", "no other layout"],
)
def test_a_pod_larger_than_every_node_waits_for_one_that_holds_it(wish, words):
    answer = refusal(wish, fleet(4, 4))
    assert (answer.reason, answer.waits, answer.gpus_wanted) == ("NoMatchingNodes", True, 8)
    assert (
        "Each pod takes 8 GPUs on one node, and the largest node of A100-80GB-PCIe has 4." in answer.message
    )
    assert words in answer.message


@pytest.mark.parametrize(
    ("explicit", "nearest"),
    [
        (ExplicitLayout(pipeline=64), "tensor 1, pipeline 32"),
        (ExplicitLayout(tensor=2, pipeline=64), "tensor 2, pipeline 32"),
        (ExplicitLayout(layer_partition=(16, 15)), "tensor 1, pipeline 2"),
        (ExplicitLayout(layer_partition=(1,) * 40), "tensor 1, pipeline 32"),
        (ExplicitLayout(tensor=3), "tensor 2, pipeline 1"),
        (ExplicitLayout(tensor=5, pipeline=2), "tensor 4, pipeline 2"),
    ],
    ids=str,
)
def test_the_nearest_keeps_as_much_as_works(explicit, nearest):
    answer = refusal(wish("m", LLAMA_8B, demand=Demand(8192), explicit=explicit), fleet(8, 8))
    assert f"The nearest that works: {nearest} (" in answer.message


def test_what_bounds_several_tensor_sizes_alike_is_said_once():
    answer = refusal(wish("m", DBRX, demand=Demand(32768, 5000)), Fleet((node("a"), node("b", product=SXM))))
    assert answer.message.count("even a stage of one layer needs") == 2
    assert answer.message.count("may be used") == 2
    assert re.search(
        r"needs [\d.]+ GiB with tp=1, [\d.]+ GiB with tp=2, [\d.]+ GiB with tp=4", answer.message
    )


def test_a_model_that_no_layout_holds_says_the_gib_of_one_layer():
    answer = refusal(wish("m", DBRX, demand=Demand(32768, 5000)), fleet(8))
    assert (answer.reason, answer.waits) == ("ModelDoesNotFit", False)
    assert "even a stage of one layer needs" in answer.message
    assert "73.6 GiB may be used" in answer.message


def test_utilization_that_leaves_no_room_for_the_context_is_named():
    on = Fleet((node("a", memory_mib=24576),))
    answer = refusal(wish("m", LLAMA_8B, demand=Demand(8192, utilization=0.99)), on)
    assert "0.99 leaves 0.24 GiB of a GPU for the CUDA context" in answer.message


def test_too_few_gpus_name_the_holders_and_the_nodes_left_out():
    on = replace(
        fleet(1, total=8),
        holders=(Holder("team/big", PCIE, 6), Holder("kube-system/job", PCIE, 1)),
        left_out=(LeftOut("z", "Cordoned", "", 8, PCIE),),
    )
    answer = refusal(measured("m", (1, 3)), on)
    assert (answer.reason, answer.gpus_wanted, answer.gpus_short, answer.waits) == (
        "InsufficientGPUs",
        3,
        2,
        True,
    )
    assert "team/big holds 6, kube-system/job holds 1. Left out: z (Cordoned, 8 GPUs)." in answer.message


def test_enough_gpus_in_pieces_that_are_too_small_are_fragmented():
    answer = refusal(measured("m", (4, 1)), fleet(3, 2, total=8))
    assert (answer.reason, answer.gpus_short) == ("GPUsFragmented", 1)
    assert "needs 4 free GPUs on one node; the largest free piece is 3" in answer.message


def test_a_model_that_is_partly_placed_counts_what_is_missing():
    answer = refusal(measured("m", (4, 1), replicas=3), fleet(4))
    assert answer.message.startswith("2 more replicas take ")
    assert (answer.gpus_wanted, answer.gpus_short) == (8, 8)


def test_the_queue_goes_by_priority_then_who_has_nothing_then_age():
    on = fleet(1, total=8)
    wishes = [
        measured("has-one", (1, 1), replicas=2, created="1"),
        measured("old", (1, 1), created="2"),
        measured("young", (1, 1), created="3"),
        measured("urgent", (2, 1), created="4", priority=10),
    ]
    positions = {model.key.name: model.position for model in plan(wishes, on).models}
    assert positions == {"urgent": 1, "old": 2, "young": 3, "has-one": 4}


def test_a_waiting_model_is_told_of_those_whose_gpus_are_promised_and_not_held_yet():
    first, second = measured("first", (1, 3)), measured("second", (1, 2))
    (owed,) = promised([first], plan([first], fleet(4)))
    answer = next(model for model in plan([owed, second], fleet(4)).models if model.key == second.key)
    assert answer.refusal is not None
    assert answer.refusal.gpus_short == 1
    assert "default/first holds 3" in answer.refusal.message


def test_a_replica_that_comes_back_to_its_gpus_is_told_of_once():
    first, second = measured("first", (1, 3)), measured("second", (1, 2))
    (owed,) = promised([first], plan([first], fleet(4)))
    owed = replace(owed, leaving=owed.promised)
    held = Fleet(fleet(1, total=4).nodes, holders=(Holder("default/first", PCIE, 3),))
    answer = next(model for model in plan([owed, second], held).models if model.key == second.key)
    assert answer.refusal is not None
    assert "default/first holds 3" in answer.refusal.message
