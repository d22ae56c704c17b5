"""The case that the project was born from: three models on exactly twelve GPUs."""

from __future__ import annotations

import pytest

from bowsprit.plan.planner import plan
from tests.unit.plan.examples import PCIE, SXM, fleet, layouts, twelve_gpu_wishes, used


@pytest.mark.parametrize(
    ("product", "dbrx"), [(PCIE, "tp1/pp4"), (SXM, "tp4/pp1")], ids=["PCIe", "SXM, linked"]
)
def test_three_models_take_exactly_twelve_gpus(product, dbrx):
    answer = plan(twelve_gpu_wishes(), fleet(4, 4, 4, product=product))
    assert layouts(answer) == {"llama": ["tp1/pp3"], "mixtral": ["tp1/pp5"], "dbrx": [dbrx]}
    assert used(answer) == {"a": 4, "b": 4, "c": 4}


def test_three_stages_on_one_node_are_one_pod_and_five_on_two_nodes_are_five():
    answer = plan(twelve_gpu_wishes(), fleet(4, 4, 4))
    pods = {model.key.name: [pod.gpus for pod in model.replicas[0].pods] for model in answer.models}
    assert pods == {"dbrx": [4], "llama": [3], "mixtral": [1, 1, 1, 1, 1]}
    assert answer.by_key[("default", "llama")].replicas[0].layout.gpus_per_pod == 3


def test_every_stage_is_within_its_share_and_all_layers_are_there():
    for model in plan(twelve_gpu_wishes(), fleet(4, 4, 4)).models:
        replica = model.replicas[0]
        assert sum(replica.layout.layer_partition) == sum(stage.layers for stage in replica.stages)
        for stage in replica.stages:
            assert stage.weights_gib + stage.kv_gib + stage.other_gib <= stage.capacity_gib


def test_the_reason_says_why_five_stages_over_two_nodes():
    why = plan(twelve_gpu_wishes(), fleet(4, 4, 4)).by_key[("default", "mixtral")].replicas[0].why
    assert why == (
        "tp=1, pp=5: 5 x A100-80GB-PCIe is the least that holds 262 GiB of weights and 4 x 65,536 tokens of "
        "cache; 48 attention heads do not divide by 5, so the layers are split; over 2 nodes because no node "
        "had 5 free."
    )


def test_with_a_node_less_the_two_that_fit_are_placed_and_the_third_waits_with_numbers():
    answer = plan(twelve_gpu_wishes(), fleet(4, 4))
    assert layouts(answer) == {"llama": ["tp1/pp3"], "mixtral": [], "dbrx": ["tp1/pp4"]}
    refusal = answer.by_key[("default", "mixtral")].refusal
    assert refusal is not None
    assert (refusal.reason, refusal.gpus_wanted, refusal.gpus_short, refusal.product) == (
        "InsufficientGPUs",
        5,
        4,
        PCIE,
    )
    assert "5 GPUs of A100-80GB-PCIe; 1 free, 4 short" in refusal.message
    assert "default/dbrx holds 4" in refusal.message
