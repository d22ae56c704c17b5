"""What each family's config says, in its own words: layers, caches, experts, divisors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bowsprit.facts.config import facts_from_config
from bowsprit.facts.families import UNSTAGEABLE
from bowsprit.facts.model import Divisor, KvKind, ModelFacts
from tests.unit.facts.test_refusals import LLAMA
from tests.unit.facts.test_reported_weights import MODELS, TABLE

CLASSES = Path("../shared/reference/vllm_arch_info.json")

MOE: dict[str, Any] = {**LLAMA, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
MLA: dict[str, Any] = {
    **LLAMA,
    "kv_lora_rank": 32,
    "q_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
}


def facts(config: dict[str, Any], **more: Any) -> ModelFacts:
    answer = facts_from_config(json.dumps(config), **more)
    assert isinstance(answer, ModelFacts), answer
    return answer


def kinds(config: dict[str, Any]) -> list[KvKind]:
    return [layer.kv.kind for layer in facts(config).layers]


def expert_layers(config: dict[str, Any]) -> list[int]:
    return [
        i for i, layer in enumerate(facts({**config, "num_hidden_layers": 6}).layers) if layer.expert_bytes
    ]


GPT2 = {
    "model_type": "gpt2",
    "n_embd": 64,
    "n_head": 4,
    "n_layer": 2,
    "n_inner": None,
    "vocab_size": 100,
    "n_positions": 128,
}
OPT = {
    "model_type": "opt",
    "hidden_size": 64,
    "ffn_dim": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}
FALCON = {
    "model_type": "falcon",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
}


@pytest.mark.parametrize(
    ("config", "kv_heads", "width", "tied"),
    [
        pytest.param(GPT2, 4, 256, True, id="gpt2: n_embd, n_head, n_layer, n_inner null is four times"),
        pytest.param(OPT, 4, 256, True, id="opt: ffn_dim"),
        pytest.param(FALCON, 1, 256, True, id="falcon: multi-query unless the config says otherwise"),
        pytest.param({**FALCON, "multi_query": False}, 4, 256, True, id="falcon with all its KV heads"),
        pytest.param(
            {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}, 2, 256, True, id="falcon 40b"
        ),
        pytest.param(LLAMA, 2, 128, False, id="llama: grouped KV heads"),
        pytest.param({**LLAMA, "num_key_value_heads": None}, 4, 128, False, id="no KV heads said: all"),
        pytest.param({**LLAMA, "model_type": "gemma"}, 2, 128, True, id="gemma: tied without saying so"),
        pytest.param(
            {**LLAMA, "model_type": "gemma", "tie_word_embeddings": False},
            2,
            128,
            False,
            id="what is said wins",
        ),
    ],
)
def test_dense_families_are_read_under_their_own_names(
    config: dict[str, Any], kv_heads: int, width: int, tied: bool
) -> None:
    answer = facts(config)
    assert (answer.kv_heads, answer.intermediate_size, answer.tied) == (kv_heads, width, tied)
    assert len(answer.layers) == 2


def test_a_llama_layer_is_split_by_how_tensor_parallelism_splits_it() -> None:
    layer = facts(LLAMA).layers[0]
    assert layer.sharded_bytes == 2 * (2 * 64 * 64 + 3 * 64 * 128)
    assert layer.kv_projection_bytes == 2 * (2 * 64 * 32)
    assert layer.replicated_bytes == 2 * (2 * 64)
    assert layer.expert_bytes == 0
    assert (layer.kv.kv_heads, layer.kv.values_per_head) == (2, 32)


def test_embedding_and_head_are_padded_to_64_rows() -> None:
    answer = facts(LLAMA)
    assert answer.vocab_size == 1000
    assert answer.embedding_bytes == answer.head_bytes == 1024 * 64 * 2
    assert Divisor("vocab_size", 1024) in answer.divisors


@pytest.mark.parametrize(
    ("more", "with_experts"),
    [
        pytest.param({}, [0, 1, 2, 3, 4, 5], id="all layers"),
        pytest.param({"first_k_dense_replace": 2}, [2, 3, 4, 5], id="the first layers are dense (DeepSeek)"),
        pytest.param({"decoder_sparse_step": 2}, [1, 3, 5], id="every other one (Qwen)"),
        pytest.param({"mlp_only_layers": [0, 5]}, [1, 2, 3, 4], id="some are named as dense (Qwen)"),
        pytest.param({"interleave_moe_layer_step": 2}, [1, 3, 5], id="every other one (Llama 4)"),
        pytest.param({"moe_layer_freq": [0, 1, 1, 0, 1, 1]}, [1, 2, 4, 5], id="a switch for each layer"),
        pytest.param(
            {"moe_layer_freq": 1, "first_k_dense_replace": 1}, [1, 2, 3, 4, 5], id="a period of one"
        ),
    ],
)
def test_experts_stand_in_the_layers_that_the_config_says(
    more: dict[str, Any], with_experts: list[int]
) -> None:
    assert expert_layers({**MOE, **more}) == with_experts


def test_experts_weigh_by_number_and_width_and_the_router_is_on_every_rank() -> None:
    layer = facts(MOE).layers[0]
    assert layer.expert_bytes == 2 * 8 * 3 * 64 * 32
    assert layer.replicated_bytes == 2 * (2 * 64 + 64 * 8)


@pytest.mark.parametrize(
    ("more", "width"),
    [
        pytest.param({"n_shared_experts": 2}, 64, id="counted (DeepSeek)"),
        pytest.param({"shared_expert_intermediate_size": 48}, 48, id="by width (Qwen2-MoE)"),
        pytest.param({"model_type": "llama4_text"}, 32, id="not said at all (Llama 4)"),
        pytest.param({"shared_intermediate_size": 0}, 0, id="none (MiniMax)"),
    ],
)
def test_shared_experts_are_as_wide_as_the_family_says(more: dict[str, Any], width: int) -> None:
    plain = facts({**MOE, "num_hidden_layers": 1}).layers[0].sharded_bytes
    shared = facts({**MOE, "num_hidden_layers": 1, **more}).layers[0].sharded_bytes
    assert shared - plain == 2 * 3 * 64 * width


def test_expert_parallelism_lifts_the_width_of_the_experts_only() -> None:
    answer = facts(MOE)
    assert set(answer.divisors) - set(answer.expert_parallel_divisors) == {
        Divisor("moe_intermediate_size", 32)
    }


def test_dbrx_is_read_in_its_own_words() -> None:
    answer = facts(MODELS["DBRX"])
    assert (len(answer.layers), answer.heads, answer.kv_heads, answer.experts) == (40, 48, 8, 16)
    assert answer.max_model_len == 32768
    assert answer.intermediate_size == 4 * 10752


def test_mla_keeps_one_latent_per_token_whatever_the_heads() -> None:
    answer = facts(MLA)
    assert {(layer.kv.kind, layer.kv.latent_values) for layer in answer.layers} == {(KvKind.MLA, 40)}
    assert answer.kv_heads == 1
    layer = answer.layers[0]
    assert layer.kv_projection_bytes == 0
    assert layer.replicated_bytes == 2 * (64 * 16 + 64 * 40 + 2 * 64)


def test_sparse_attention_adds_its_index_to_the_latent() -> None:
    answer = facts({**MLA, "index_n_heads": 4, "index_head_dim": 128})
    assert answer.layers[0].kv.latent_values == 40 + 66


F, S, R = KvKind.FULL, KvKind.SLIDING, KvKind.STATE
GDN = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
WINDOW = {**LLAMA, "num_hidden_layers": 4, "sliding_window": 128}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(WINDOW, [S] * 4, id="mistral: a window is for all layers"),
        pytest.param({**WINDOW, "use_sliding_window": False}, [F] * 4, id="qwen2: switched off"),
        pytest.param(
            {**WINDOW, "use_sliding_window": True, "max_window_layers": 3},
            [F, F, F, S],
            id="qwen2: the last layers",
        ),
        pytest.param({**WINDOW, "sliding_window_pattern": 2}, [S, F, S, F], id="gemma3: every n-th is full"),
        pytest.param({**WINDOW, "sliding_window_pattern": "LLLG"}, [S, S, S, F], id="exaone4: letters"),
        pytest.param({**WINDOW, "model_type": "gemma2"}, [S, F, S, F], id="gemma2: by its class"),
        pytest.param(
            {**WINDOW, "layer_types": ["sliding_attention", "full_attention"] * 2},
            [S, F, S, F],
            id="gpt-oss: a list",
        ),
        pytest.param(
            {
                **LLAMA,
                **GDN,
                "linear_conv_kernel_dim": 4,
                "num_hidden_layers": 4,
                "full_attention_interval": 4,
            },
            [R, R, R, F],
            id="qwen3-next: linear attention but for every fourth",
        ),
        pytest.param(
            {
                **LLAMA,
                "num_hidden_layers": 4,
                "hybrid_override_pattern": "M-*M",
                "mamba_num_heads": 4,
                "mamba_head_dim": 16,
                "ssm_state_size": 8,
                "n_groups": 2,
                "conv_kernel": 4,
            },
            [R, KvKind.NONE, F, R],
            id="nemotron-h: letters for mamba, MLP and attention",
        ),
    ],
)
def test_the_cache_of_each_layer_follows_the_pattern(config: dict[str, Any], expected: list[KvKind]) -> None:
    assert kinds(config) == expected


def test_a_state_counts_its_convolution_and_its_matrix_once_per_request() -> None:
    config = {**LLAMA, **GDN, "linear_conv_kernel_dim": 4, "full_attention_interval": 2}
    state = facts(config).layers[0].kv.state_bytes
    assert state == 2 * (2 * 16 + 32) * 3 + 2 * 4 * 8 * 8
    assert facts({**config, "mamba_ssm_dtype": "float32"}).layers[0].kv.state_bytes == state + 2 * 4 * 8 * 8
    assert Divisor("linear_num_key_heads", 2) in facts(config).divisors


def test_gemma4_global_layers_have_their_own_heads() -> None:
    answer = facts(TABLE["models"]["google/gemma-4-26B-A4B"])
    assert {(kv.kind, kv.kv_heads, kv.values_per_head) for kv in (layer.kv for layer in answer.layers)} == {
        (S, 8, 512),
        (F, 2, 1024),
    }


@pytest.mark.parametrize(
    ("more", "length"),
    [
        pytest.param({}, 2048, id="as said"),
        pytest.param(
            {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, 8192, id="linear scaling multiplies"
        ),
        pytest.param(
            {"rope_scaling": {"type": "dynamic", "factor": 2}}, 4096, id="dynamic scaling multiplies"
        ),
        pytest.param(
            {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 2048, id="yarn is scaled already"
        ),
        pytest.param(
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 2048, id="llama3 is scaled already"
        ),
        pytest.param(
            {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
            2048,
            id="gemma3 is scaled already",
        ),
        pytest.param({"model_max_length": 9000}, 9000, id="model_max_length wins"),
        pytest.param({"seq_length": 512}, 512, id="the smallest of several names"),
        pytest.param({"max_position_embeddings": None}, None, id="not said"),
    ],
)
def test_the_longest_context_is_the_one_that_vllm_derives(more: dict[str, Any], length: int | None) -> None:
    assert facts({**LLAMA, **more}).max_model_len == length


def test_a_float32_checkpoint_is_served_in_16_bits() -> None:
    answer = facts({**LLAMA, "torch_dtype": "float32"})
    assert (answer.dtype, answer.dtype_bytes) == ("bfloat16", 2)


def test_a_vision_tower_stands_beside_the_layers_of_the_text_part() -> None:
    tower = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "spatial_merge_size": 2}
    answer = facts({"architectures": ["X"], "text_config": LLAMA, "vision_config": tower})
    assert answer.layers == facts(LLAMA).layers
    assert answer.extra_bytes == 2 * (2 * (4 * 32 * 32 + 2 * 32 * 64) + 128 * 128 + 128 * 64)
    assert facts({"text_config": LLAMA, "vision_config": {"patch_size": 14}}).extra_bytes == 0


def test_which_classes_vllm_can_split_into_stages() -> None:
    assert facts({**LLAMA, "architectures": ["LlamaForCausalLM"]}).stageable
    assert facts({**LLAMA, "architectures": ["SomebodysOwnForCausalLM"]}).stageable
    assert not facts({**LLAMA, "architectures": ["Gemma3nForCausalLM"]}).stageable
    assert facts(
        {**LLAMA, "architectures": ["Gemma3nForCausalLM"]}, overrides={"architectures": ["Own"]}
    ).stageable


@pytest.mark.skipif(not CLASSES.exists(), reason="the list of vLLM's classes is not here")
def test_the_classes_that_cannot_be_split_are_vllms_own() -> None:
    classes = json.loads(CLASSES.read_text())["models"]
    serving = {
        name: each["supports_pp"]
        for name, each in classes.items()
        if each["text_gen"] and not each["draft"] and not each["pooling"]
    }
    assert {name for name, splits in serving.items() if not splits} == UNSTAGEABLE
