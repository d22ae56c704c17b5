"""The sizes that every family has, under all the names that they go by.

A `Shape` is read once from the text part of a config; blocks take their widths from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from bowsprit.facts.families import ONE_KV_HEAD, SAID_BY_CLASS, UNGATED
from bowsprit.facts.fields import Count, Fields, invalid

LAYERS = Count(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), maximum=1000)
HIDDEN = Count(("hidden_size", "d_model", "n_embd", "dim"), maximum=1_000_000)
HEADS = Count(("num_attention_heads", "n_head", "n_heads", "num_heads"), maximum=100_000)
KV_HEADS = Count(
    ("num_key_value_heads", "n_head_kv", "num_kv_heads", "attn_config.kv_n_heads", "multi_query_group_num"),
    maximum=100_000,
)
HEAD_DIM = Count(("head_dim", "attention_head_dim", "kv_channels"), maximum=65_536)
VOCABULARY = Count(("vocab_size", "padded_vocab_size"), maximum=100_000_000)
WIDTH = Count(
    ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff", "block_ff_dim"),
    maximum=10_000_000,
)


@dataclass(frozen=True, slots=True)
class Shape:
    family: str
    """model_type of the text part, or "" when the config does not say."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int

    @property
    def widening(self) -> tuple[str, ...]:
        """Names of the MLP matrices that widen a token; down_proj comes on top."""
        return ("up_proj",) if self.family in UNGATED else ("gate_proj", "up_proj")


def read_shape(config: Fields) -> Shape:
    family = config.text("model_type") or ""
    config = config.with_defaults(SAID_BY_CLASS.get(family, {}))
    hidden, heads = config.need(HIDDEN), config.need(HEADS)
    return Shape(
        family=family,
        layers=config.need(LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(config, family, heads),
        head_dim=_head_dim(config, hidden, heads),
        vocabulary=config.need(VOCABULARY),
    )


def _kv_heads(config: Fields, family: str, heads: int) -> int:
    if family in ONE_KV_HEAD and not config.flag("new_decoder_architecture"):
        return 1 if config.flag("multi_query", default=True) else heads
    kv_heads = config.get(KV_HEADS) or heads
    if kv_heads > heads:
        raise invalid(config.path(KV_HEADS.names[0]), kv_heads, f"at most the {heads} attention heads")
    return kv_heads


def _head_dim(config: Fields, hidden: int, heads: int) -> int:
    said = config.get(HEAD_DIM)
    if said is None and hidden < heads:
        raise invalid(
            config.path(HIDDEN.names[0]), hidden, f"at least one value for each of the {heads} heads"
        )
    return said or hidden // heads


def padded_vocabulary(vocabulary: int) -> int:
    """vLLM pads embedding and head to 64 rows (layers/vocab_parallel_embedding.py)."""
    return -(-vocabulary // 64) * 64
