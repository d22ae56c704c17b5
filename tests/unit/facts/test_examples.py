"""The examples' promises by hand arithmetic: the least number of 80 GiB GPUs, without asking the planner."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.facts.config import facts_from_config
from bowsprit.facts.model import ModelFacts

EXAMPLES = Path(__file__).parents[3] / "examples"
GIB = 2**30
BUDGET = 80 * 0.92
RESERVE = 4.0
"""GiB for activations, CUDA graphs and buffers: an upper bound at 2,048 batched tokens."""


def read(path: Path) -> tuple[ModelFacts, ModelDeployment]:
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(path.read_text()))
    by_kind = {document["kind"]: document for document in documents}
    deployment = ModelDeployment.model_validate(by_kind["ModelDeployment"])
    config_map = by_kind["ConfigMap"]
    assert deployment.spec.model.config is not None
    assert deployment.spec.model.config.config_map_ref.name == config_map["metadata"]["name"]
    facts = facts_from_config(config_map["data"]["config.json"])
    assert isinstance(facts, ModelFacts), facts
    return facts, deployment


def layer_gib(facts: ModelFacts, tokens: int) -> float:
    """One layer's weights and KV cache; the layers of the examples are all alike."""
    (layer,) = set(facts.layers)
    cache = tokens * layer.kv.kv_heads * layer.kv.values_per_head * facts.kv_dtype_bytes
    return (layer.weight_bytes + cache) / GIB


@pytest.mark.parametrize(
    ("path", "gpus"),
    [
        ("twelve-gpus/llama-3.1-70b.yaml", 3),
        ("twelve-gpus/mixtral-8x22b.yaml", 5),
        ("twelve-gpus/dbrx.yaml", 4),
        ("quickstart/llama-3.1-8b.yaml", 1),
    ],
)
def test_an_example_fits_on_its_gpus_and_not_on_one_less(path: str, gpus: int) -> None:
    facts, deployment = read(EXAMPLES / path)
    capacity = deployment.spec.capacity
    assert capacity is not None
    assert capacity.max_model_len is not None
    assert capacity.concurrency is not None
    layer = layer_gib(facts, capacity.max_model_len * capacity.concurrency)
    ends = (facts.embedding_bytes + facts.head_bytes) / GIB

    def fullest(stages: int) -> float:
        return ceil(len(facts.layers) / stages) * layer + ends

    assert fullest(gpus) + RESERVE <= BUDGET
    assert gpus == 1 or len(facts.layers) / (gpus - 1) * layer > BUDGET


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("three-a100-nodes", "NVIDIA-A100-80GB-PCIe"),
        ("three-a100-sxm-nodes", "NVIDIA-A100-SXM4-80GB"),
    ],
)
def test_an_inventory_holds_three_ready_nodes_of_four_gpus(name: str, product: str) -> None:
    listing = yaml.safe_load((EXAMPLES / "inventories" / f"{name}.yaml").read_text())
    assert listing["kind"] == "List"
    assert [node["metadata"]["name"] for node in listing["items"]] == ["gpu-a", "gpu-b", "gpu-c"]
    for node in listing["items"]:
        labels, status = node["metadata"]["labels"], node["status"]
        assert (labels["nvidia.com/gpu.product"], labels["nvidia.com/gpu.memory"]) == (product, "81920")
        assert status["capacity"]["nvidia.com/gpu"] == status["allocatable"]["nvidia.com/gpu"] == "4"
        assert {"type": "Ready", "status": "True"} in status["conditions"]
