"""Weights per GPU against what vLLM itself logged ("Model loading took … GiB"), from public reports by id.

`reported_weights.json` holds the config fields that matter and the figure of each report.
"""

from __future__ import annotations

import json
import statistics
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from bowsprit.facts.config import facts_from_config
from bowsprit.facts.model import Layer, ModelFacts

GIB = 2**30
TABLE = json.loads((Path(__file__).parent / "reported_weights.json").read_text())

# Checkpoints whose figure a config cannot give within 2%, and why.
WIDER = {
    "file-70347757402-qwen2.5-7b-awq-h200": 0.04,  # 0.18 GiB more than the shapes give; not explained
    "llmd-gptoss120b": 0.03,  # Hopper kernels pad less than Marlin, which is assumed
    "dl22-gptoss120b-tp4-4nodes": 0.05,  # each rank pads its own slice of the experts
    "recipes-qwen3.8-27b-fp8-2x5090": 0.03,  # the vision tower is split; counted whole here
    "vllm-28228-kimi-linear-2x3090": 0.05,  # list of unquantized modules unknown
    "vllm-15014-r1-awq-16x4090-48g": 0.04,  # list of unquantized modules unknown
    "vllm-16199-gemma3-27b-awq-a10": 0.03,  # list of unquantized modules unknown
    "vllm-25970-qwen2.5-omni-7b-a100": 0.03,  # towers are estimated
    "vllm-39133-gemma4-31b-awq-2x3090": 0.03,  # list of unquantized modules unknown
    "vllm-40437-gemma4-31b-bnb": 0.03,  # list of unquantized modules unknown
}


def facts_of(model: str) -> ModelFacts:
    facts = facts_from_config(json.dumps(TABLE["models"][model]))
    assert isinstance(facts, ModelFacts), facts
    return facts


def split(layers: int, stages: int) -> list[int]:
    """vLLM distributed/utils.py get_pp_indices."""
    parts = [layers // stages] * stages
    for i in range(2, layers % stages + 2):
        parts[-i] += 1
    return parts


def on_rank(layer: Layer, tensor: int, facts: ModelFacts) -> float:
    kv_ranks = min(tensor, layer.kv.kv_heads or facts.kv_heads)
    split_evenly = (layer.sharded_bytes + layer.expert_bytes) / tensor
    return split_evenly + layer.kv_projection_bytes / kv_ranks + layer.replicated_bytes


def stage_gib(facts: ModelFacts, tensor: int, pipeline: int) -> list[float]:
    """Weights of one GPU of each stage."""
    ends = list(accumulate(split(len(facts.layers), pipeline)))
    stages = []
    for stage, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        embedding = stage == 0 or facts.embedding_on_every_stage or (facts.tied and stage == pipeline - 1)
        head = not facts.tied and (stage == pipeline - 1 or facts.head_on_every_stage)
        size = sum(on_rank(layer, tensor, facts) for layer in facts.layers[start:end]) + facts.rank_bytes
        size += (facts.embedding_bytes * embedding + facts.head_bytes * head) / tensor
        size += facts.extra_bytes if stage == 0 else 0
        stages.append(size / GIB)
    return stages


def error(figure: dict[str, Any]) -> float:
    fullest = max(stage_gib(facts_of(figure["model"]), figure["tensor"], figure["pipeline"]))
    return fullest / float(figure["gib"]) - 1


@pytest.mark.parametrize("figure", TABLE["figures"], ids=lambda figure: figure["report"])
def test_the_fullest_rank_weighs_what_the_engine_reported(figure: dict[str, Any]) -> None:
    assert abs(error(figure)) < WIDER.get(figure["report"], 0.02)


def test_the_median_error_over_all_reports_is_under_one_percent() -> None:
    assert statistics.median(abs(error(figure)) for figure in TABLE["figures"]) < 0.01


MODELS: dict[str, dict[str, Any]] = {
    "Llama-3.1-70B": {
        "model_type": "llama",
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "Mixtral-8x22B": {
        "model_type": "mixtral",
        "hidden_size": 6144,
        "intermediate_size": 16384,
        "num_hidden_layers": 56,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 32768,
        "max_position_embeddings": 65536,
        "torch_dtype": "bfloat16",
    },
    "DBRX": {
        "model_type": "dbrx",
        "d_model": 6144,
        "n_heads": 48,
        "n_layers": 40,
        "max_seq_len": 32768,
        "vocab_size": 100352,
        "attn_config": {"kv_n_heads": 8},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
}


@pytest.mark.parametrize(
    ("model", "tensor", "pipeline", "gib"),
    [
        ("Llama-3.1-70B", 1, 3, [45.0, 43.1, 43.4]),
        ("Llama-3.1-70B", 8, 1, [16.5]),
        ("Mixtral-8x22B", 1, 5, [52.1, 52.1, 52.1, 56.7, 52.1]),
        ("Mixtral-8x22B", 4, 1, [65.5]),
        ("DBRX", 4, 1, [61.3]),
    ],
)
def test_every_stage_weighs_what_the_model_built_on_the_meta_device_has(
    model: str, tensor: int, pipeline: int, gib: list[float]
) -> None:
    facts = facts_from_config(json.dumps(MODELS[model]))
    assert isinstance(facts, ModelFacts), facts
    assert stage_gib(facts, tensor, pipeline) == pytest.approx(gib, abs=0.06)
