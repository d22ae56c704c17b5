"""Attention with keys and values per head: MHA, GQA, MQA, sliding windows, and MLA's single latent.

Each function gives the weights of one layer's attention and its cache need, as vLLM holds them
(model_executor/models/llama.py, deepseek_v2.py; v1/kv_cache_interface.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from bowsprit.facts.families import OUTPUT_GATED
from bowsprit.facts.fields import Count, Fields
from bowsprit.facts.model import KvCache, KvKind
from bowsprit.facts.shape import Shape
from bowsprit.facts.weights import Split, Weight, norm

WINDOW = Count(
    ("sliding_window", "sliding_window_size", "attention_chunk_size"), maximum=1_000_000_000, minimum=0
)
_GLOBAL_HEAD_DIM = Count(("global_head_dim",), maximum=65_536)
_GLOBAL_KV_HEADS = Count(("num_global_key_value_heads",), maximum=100_000)
_KV_RANK = Count(("kv_lora_rank",), maximum=1_000_000)
_Q_RANK = Count(("q_lora_rank",), maximum=1_000_000)
_NOPE_DIM = Count(("qk_nope_head_dim",), maximum=65_536)
_ROPE_DIM = Count(("qk_rope_head_dim",), maximum=65_536, minimum=0)
_VALUE_DIM = Count(("v_head_dim",), maximum=65_536)
_INDEX_HEADS = Count(("index_n_heads",), maximum=100_000)
_INDEX_DIM = Count(("index_head_dim",), maximum=65_536)

_INDEXER_CACHE_BYTES = 132
"""Per token and layer: 128 fp8 values and a scale (vLLM deepseek_v2.py, DeepseekV32IndexerCache)."""


@dataclass(frozen=True, slots=True)
class Mixer:
    """What mixes tokens in one layer: its weights and its cache."""

    weights: tuple[Weight, ...]
    kv: KvCache
    head_output: int = 0
    """Values that one head hands to the output projection; 0 when there are no heads to split."""


def uses_mla(config: Fields) -> bool:
    return config.get(_KV_RANK) is not None


def per_head(config: Fields, shape: Shape, window: int) -> Mixer:
    """Attention with KV heads; `window` tokens when it slides, 0 when it sees everything."""
    head_dim, kv_heads = shape.head_dim, shape.kv_heads
    if not window:
        head_dim = config.get(_GLOBAL_HEAD_DIM) or head_dim
        kv_heads = config.get(_GLOBAL_KV_HEADS) or kv_heads
    gate = 2 if config.flag("attn_output_gate", default=shape.family in OUTPUT_GATED) else 1
    width, kv_width = shape.heads * head_dim, kv_heads * head_dim
    return Mixer(
        weights=(
            Weight("self_attn.q_proj", shape.hidden, gate * width),
            Weight("self_attn.k_proj", shape.hidden, kv_width, Split.KV),
            Weight("self_attn.v_proj", shape.hidden, kv_width, Split.KV),
            Weight("self_attn.o_proj", width, shape.hidden),
            norm("input_layernorm", shape.hidden),
        ),
        kv=KvCache(
            KvKind.SLIDING if window else KvKind.FULL,
            kv_heads=kv_heads,
            values_per_head=2 * head_dim,
            window=window,
        ),
        head_output=head_dim,
    )


def latent(config: Fields, shape: Shape, kv_dtype_bytes: int) -> Mixer:
    """Multi-head latent attention; the projections down to the latents are on every rank."""
    rank, rope = config.need(_KV_RANK), config.need(_ROPE_DIM)
    nope, value = config.need(_NOPE_DIM), config.need(_VALUE_DIM)
    per_query, per_kv = shape.heads * (nope + rope), shape.heads * (nope + value)
    indexer, indexer_values = _indexer(config, shape, kv_dtype_bytes)
    return Mixer(
        weights=(
            *_latent_query(config, shape, per_query),
            Weight("self_attn.kv_a_proj_with_mqa", shape.hidden, rank + rope, Split.REPLICATED),
            Weight("self_attn.kv_b_proj", rank, per_kv),
            # vLLM keeps kv_b_proj for prefill and a second, unquantized copy that is absorbed into decoding.
            Weight("self_attn.kv_b_proj.absorbed", rank, per_kv, quantizable=False),
            Weight("self_attn.o_proj", shape.heads * value, shape.hidden),
            norm("input_layernorm", shape.hidden),
            *indexer,
        ),
        kv=KvCache(KvKind.MLA, kv_heads=1, latent_values=rank + rope + indexer_values),
        head_output=value,
    )


def _latent_query(config: Fields, shape: Shape, per_query: int) -> tuple[Weight, ...]:
    rank = config.get(_Q_RANK)
    if rank is None:
        return (Weight("self_attn.q_proj", shape.hidden, per_query),)
    return (
        Weight("self_attn.q_a_proj", shape.hidden, rank, Split.REPLICATED),
        Weight("self_attn.q_b_proj", rank, per_query),
    )


def _indexer(config: Fields, shape: Shape, kv_dtype_bytes: int) -> tuple[tuple[Weight, ...], int]:
    """DeepSeek sparse attention: weights on every rank, and a small cache of its own beside the latent."""
    heads, dim = config.get(_INDEX_HEADS), config.get(_INDEX_DIM)
    if heads is None or dim is None:
        return (), 0
    weights = (
        Weight("self_attn.indexer.wq_b", config.need(_Q_RANK), heads * dim, Split.REPLICATED),
        Weight("self_attn.indexer.wk", shape.hidden, dim, Split.REPLICATED),
        Weight("self_attn.indexer.weights_proj", shape.hidden, heads, Split.REPLICATED, quantizable=False),
    )
    return weights, -(-_INDEXER_CACHE_BYTES // kv_dtype_bytes)
