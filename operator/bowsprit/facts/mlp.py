"""What follows attention in a layer: a dense MLP, or routed experts with shared ones beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from bowsprit.facts.families import ADJUSTED_WIDTH, FOUR_TIMES_WIDE, MLP_BESIDE_EXPERTS, SHARED_EXPERT
from bowsprit.facts.fields import Count, Fields, invalid
from bowsprit.facts.shape import WIDTH, Shape
from bowsprit.facts.weights import Split, Weight, norm

EXPERTS = Count(
    ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "ffn_config.moe_num_experts"),
    maximum=100_000,
    minimum=0,
)
_EXPERT_WIDTH = Count(
    (
        "moe_intermediate_size",
        "expert_intermediate_size",
        "ffn_config.ffn_hidden_size",
        "moe_ffn_hidden_size",
    ),
    maximum=10_000_000,
)
_TOP_K = Count(
    (
        "num_experts_per_tok",
        "num_experts_per_token",
        "experts_per_token",
        "top_k_experts",
        "moe_topk",
        "moe_k",
        "moe_top_k",
        "ffn_config.moe_top_k",
    ),
    maximum=100_000,
)
_SHARED = Count(
    ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"), 10_000, 0
)
_SHARED_WIDTH = Count(
    ("shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"),
    maximum=10_000_000,
    minimum=0,
)
_DENSE_WIDTH = Count(("intermediate_size_mlp",), WIDTH.maximum)
"""Llama 4 keeps intermediate_size for its experts."""
_WIDTH_MULTIPLE = Count(("block_multiple_of",), 65_536)


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of an MoE layer and the shared ones that every token passes."""

    count: int
    per_token: int
    width: int
    shared_width: int

    @property
    def activation(self) -> int:
        return self.per_token * self.width + self.shared_width


def read_experts(config: Fields, shape: Shape) -> Experts | None:
    """None for a dense model."""
    count = config.get(EXPERTS)
    if not count or count == 1:
        return None
    width = config.get(_EXPERT_WIDTH) or config.need(WIDTH)
    return Experts(count, min(count, config.need(_TOP_K)), width, _shared_width(config, shape, width))


def missing_experts(config: Fields) -> NoReturn:
    """A layer pattern asks for experts and the config counts none."""
    raise invalid(config.path(EXPERTS.names[0]), config.get(EXPERTS), "2 or more: the layers have experts")


def _shared_width(config: Fields, shape: Shape, width: int) -> int:
    said = config.get(_SHARED_WIDTH)
    if said is not None:
        return said
    if shape.family in MLP_BESIDE_EXPERTS:
        return config.need(WIDTH)
    return (config.get(_SHARED) or int(shape.family in SHARED_EXPERT)) * width


def dense_width(config: Fields, shape: Shape) -> int:
    said = config.get(_DENSE_WIDTH) or config.get(WIDTH)
    if said is None and shape.family in FOUR_TIMES_WIDE:
        return 4 * shape.hidden
    width = said or config.need(WIDTH)
    return _adjusted(width, config) if shape.family in ADJUSTED_WIDTH else width


def _adjusted(width: int, config: Fields) -> int:
    """Two thirds of what is said, rounded up (transformers modeling_lfm2.py, Lfm2MLP)."""
    if not config.flag("block_auto_adjust_ff_dim", default=True):
        return width
    multiple = config.get(_WIDTH_MULTIPLE) or 256
    return -(-(2 * width // 3) // multiple) * multiple


def dense(width: int, shape: Shape) -> tuple[Weight, ...]:
    return (*_gated("mlp", width, shape), norm("post_attention_layernorm", shape.hidden))


def routed(experts: Experts, shape: Shape) -> tuple[Weight, ...]:
    shared = _gated("mlp.shared_experts", experts.shared_width, shape) if experts.shared_width else ()
    return (
        Weight("mlp.gate", shape.hidden, experts.count, Split.REPLICATED, quantizable=False),
        *_gated("mlp.experts.0", experts.width, shape, Split.EXPERT, experts.count),
        *shared,
        norm("post_attention_layernorm", shape.hidden),
    )


def _gated(
    name: str, width: int, shape: Shape, split: Split = Split.SHARDED, count: int = 1
) -> tuple[Weight, ...]:
    up = (Weight(f"{name}.{matrix}", shape.hidden, width, split, count) for matrix in shape.widening)
    return (*up, Weight(f"{name}.down_proj", width, shape.hidden, split, count))
