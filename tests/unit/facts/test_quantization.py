"""Bytes and slices of quantized checkpoints, and the modules that are spared."""

from __future__ import annotations

from typing import Any

import pytest

from bowsprit.facts.model import Divisor
from bowsprit.facts.patterns import Patterns
from bowsprit.facts.quantization import MXFP4, NVFP4, Scheme
from tests.unit.facts.test_families import MOE, facts
from tests.unit.facts.test_refusals import LLAMA


@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        pytest.param(Scheme(8), 256 * 512 + 512 * 4, id="8 bits and a scale per channel"),
        pytest.param(Scheme(8, block=(128, 128)), 256 * 512 + 4 * 2 * 4, id="fp8 blocks"),
        pytest.param(Scheme(4, group=128, extra_bits=20), 256 * 512 // 2 + 512 * 2 * 20 // 8, id="awq"),
        pytest.param(NVFP4, 256 * 512 // 2 + 512 * 16, id="nvfp4"),
        pytest.param(MXFP4, 256 * 512 // 2 + 512 * 8, id="mxfp4 without padding"),
    ],
)
def test_a_matrix_of_256_inputs_and_512_outputs_weighs(scheme: Scheme, size: int) -> None:
    assert scheme.matrix_bytes(256, 512) == size


def test_mxfp4_experts_are_padded_as_the_kernel_holds_them() -> None:
    assert MXFP4.matrix_bytes(2880, 2880) == MXFP4.matrix_bytes(3072, 2944)


def quantized(config: dict[str, Any], **quantization: Any) -> Any:
    return facts({**config, "quantization_config": quantization})


GROUP = {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True}


@pytest.mark.parametrize(
    ("quantization", "unit"),
    [
        pytest.param({"quant_method": "gptq", "bits": 4, "group_size": 32}, 32, id="gptq"),
        pytest.param({"quant_method": "gptq", "bits": 4, "group_size": -1}, 1, id="gptq per channel"),
        pytest.param({"quant_method": "awq", "bits": 4, "group_size": 64}, 64, id="awq"),
        pytest.param({"quant_method": "fp8", "weight_block_size": [128, 128]}, 128, id="fp8 blocks"),
        pytest.param({"quant_method": "fp8"}, 1, id="fp8 per channel"),
        pytest.param(
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"targets": ["Linear"], "weights": GROUP}},
            },
            32,
            id="compressed-tensors",
        ),
        pytest.param({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 16, id="modelopt nvfp4"),
        pytest.param({"quant_method": "something_new"}, 1, id="unknown: not quantized"),
    ],
)
def test_a_rank_holds_whole_quantization_groups(quantization: dict[str, Any], unit: int) -> None:
    assert Divisor("intermediate_size", 128, unit) in quantized(LLAMA, **quantization).divisors


def test_an_unknown_method_counts_in_full_precision() -> None:
    assert quantized(LLAMA, quant_method="something_new").layers == facts(LLAMA).layers


@pytest.mark.parametrize(
    "spared",
    [
        "self_attn",
        "re:.*self_attn.*",
        "model.layers.*.self_attn",
        "model.layers.0.self_attn*",
        "re:.*layers\\.0\\.self_attn.*",
        "re:.*\\.(q|k|v|o)_proj$",
        "re:model\\.layers\\.\\d+\\.self_attn\\..*",
    ],
)
def test_spared_attention_keeps_its_precision_and_the_mlp_does_not(spared: str) -> None:
    plain = facts(LLAMA).layers[0]
    layer = quantized(LLAMA, quant_method="fp8", modules_to_not_convert=[spared]).layers[0]
    assert layer.kv_projection_bytes == plain.kv_projection_bytes
    assert layer.sharded_bytes < plain.sharded_bytes


@pytest.mark.parametrize(
    "other", ["mtp.layers.0*", "model.visual.layers.0.self_attn*", "re:.*vision.*", "lm_head"]
)
def test_what_is_said_of_other_parts_spares_no_layer(other: str) -> None:
    assert not Patterns([other]).matches("layers.0.self_attn.q_proj")


def test_experts_and_attention_may_have_schemes_of_their_own() -> None:
    groups = {
        "experts": {"targets": ["re:.*block_sparse_moe\\.experts.*"], "weights": GROUP},
        "attention": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "float"}},
    }
    plain = facts(MOE).layers[0]
    layer = quantized(MOE, quant_method="compressed-tensors", config_groups=groups).layers[0]
    assert layer.expert_bytes == 8 * 3 * 64 * 32 // 2 + 8 * (2 * 32 * 2 + 64) * 2
    assert layer.kv_projection_bytes == plain.kv_projection_bytes // 2 + 2 * 32 * 4
    assert layer.replicated_bytes == plain.replicated_bytes


def test_the_head_stays_in_full_precision_unless_it_is_named() -> None:
    groups = {"g": {"targets": ["lm_head"], "weights": {"num_bits": 8, "type": "float"}}}
    full = facts(LLAMA).head_bytes
    assert quantized(LLAMA, quant_method="fp8").head_bytes == full
    assert quantized(LLAMA, quant_method="compressed-tensors", config_groups=groups).head_bytes < full
    assert quantized(LLAMA, quant_method="gptq", bits=4, group_size=32, lm_head=True).head_bytes < full


@pytest.mark.parametrize(
    "scheme", [{"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, {"kv_cache_quant_algo": "FP8"}]
)
def test_the_checkpoints_own_kv_cache_scheme_halves_a_cached_value(scheme: dict[str, Any]) -> None:
    assert quantized(LLAMA, quant_method="fp8", **scheme).kv_dtype_bytes == 1
    assert quantized(LLAMA, quant_method="fp8").kv_dtype_bytes == 2
