"""Layers that keep a state instead of a cache that grows: mamba, gated delta nets, KDA, short convolutions.

State sizes follow vLLM model_executor/layers/mamba/mamba_utils.py: a window of the convolution's inputs in
the activation dtype and a recurrent matrix, one of each per request.
"""

from __future__ import annotations

from bowsprit.facts.attention import Mixer
from bowsprit.facts.fields import Count, Fields
from bowsprit.facts.model import Divisor, KvCache, KvKind
from bowsprit.facts.shape import Shape
from bowsprit.facts.weights import Split, Weight, norm

_SIZE = 1_000_000


def _count(*names: str, maximum: int = _SIZE) -> Count:
    return Count(names, maximum=maximum)


_GDN_KEY_HEADS = _count("linear_num_key_heads")
_GDN_VALUE_HEADS = _count("linear_num_value_heads")
_GDN_KEY_DIM = _count("linear_key_head_dim")
_GDN_VALUE_DIM = _count("linear_value_head_dim")
_GDN_KERNEL = _count("linear_conv_kernel_dim")
_KDA_HEADS = _count("linear_attn_config.num_heads")
_KDA_DIM = _count("linear_attn_config.head_dim")
_KDA_KERNEL = _count("linear_attn_config.short_conv_kernel_size")
_MAMBA_HEADS = _count("mamba_num_heads", "mamba_n_heads")
_MAMBA_DIM = _count("mamba_head_dim", "mamba_d_head")
_MAMBA_STATE = _count("ssm_state_size", "mamba_d_state", "state_size")
_MAMBA_GROUPS = _count("n_groups", "mamba_n_groups")
_MAMBA_KERNEL = _count("conv_kernel", "mamba_d_conv")
_CONV_KERNEL = _count("conv_L_cache")

_FLOAT32_BYTES = 4


def gated_delta_net(config: Fields, shape: Shape, dtype_bytes: int) -> Mixer:
    """Qwen3-Next and later (vLLM models/qwen3_next.py)."""
    keys = config.need(_GDN_KEY_HEADS) * config.need(_GDN_KEY_DIM)
    value_heads, value_dim = config.need(_GDN_VALUE_HEADS), config.need(_GDN_VALUE_DIM)
    values, kernel = value_heads * value_dim, config.need(_GDN_KERNEL)
    channels = 2 * keys + values
    matrix = value_heads * value_dim * config.need(_GDN_KEY_DIM)
    return Mixer(
        weights=(
            Weight("linear_attn.in_proj_qkv", shape.hidden, channels),
            Weight("linear_attn.in_proj_z", shape.hidden, values),
            Weight("linear_attn.in_proj_ba", shape.hidden, 2 * value_heads, quantizable=False),
            Weight("linear_attn.conv1d", kernel, channels, quantizable=False),
            Weight("linear_attn.out_proj", values, shape.hidden),
            norm("input_layernorm", shape.hidden),
        ),
        kv=_state(channels, kernel, matrix, config, dtype_bytes),
    )


def delta_attention(config: Fields, shape: Shape, dtype_bytes: int) -> Mixer:
    """Kimi delta attention (vLLM models/kimi_linear.py): low-rank gates, a float32 matrix per head."""
    heads, dim, kernel = config.need(_KDA_HEADS), config.need(_KDA_DIM), config.need(_KDA_KERNEL)
    width = heads * dim
    return Mixer(
        weights=(
            *(Weight(f"self_attn.{name}_proj", shape.hidden, width) for name in "qkv"),
            *(Weight(f"self_attn.{name}_a_proj", shape.hidden, dim, Split.REPLICATED) for name in "fg"),
            *(Weight(f"self_attn.{name}_b_proj", dim, width) for name in "fg"),
            Weight("self_attn.b_proj", shape.hidden, heads),
            Weight("self_attn.conv1d", kernel, 3 * width, quantizable=False),
            Weight("self_attn.o_proj", width, shape.hidden),
            norm("input_layernorm", shape.hidden),
        ),
        kv=KvCache(
            KvKind.STATE,
            state_bytes=3 * width * (kernel - 1) * dtype_bytes + width * dim * _FLOAT32_BYTES,
        ),
    )


def mamba2(config: Fields, shape: Shape, dtype_bytes: int) -> Mixer:
    """Nemotron-H, Bamba, Granite hybrids (vLLM layers/mamba/mamba_mixer2.py)."""
    heads, dim = config.need(_MAMBA_HEADS), config.need(_MAMBA_DIM)
    state, kernel = config.need(_MAMBA_STATE), config.need(_MAMBA_KERNEL)
    width, groups = heads * dim, config.get(_MAMBA_GROUPS) or 1
    channels = width + 2 * groups * state
    return Mixer(
        weights=(
            Weight("mixer.in_proj", shape.hidden, width + channels + heads),
            Weight("mixer.conv1d", kernel, channels, quantizable=False),
            Weight("mixer.out_proj", width, shape.hidden),
            norm("norm", shape.hidden),
        ),
        kv=_state(channels, kernel, width * state, config, dtype_bytes),
    )


def short_convolution(config: Fields, shape: Shape, dtype_bytes: int) -> Mixer:
    """LFM2 (vLLM layers/mamba/short_conv.py): a window of inputs and nothing else."""
    kernel = config.need(_CONV_KERNEL)
    return Mixer(
        weights=(
            Weight("conv.in_proj", shape.hidden, 3 * shape.hidden),
            Weight("conv.conv", kernel, shape.hidden, quantizable=False),
            Weight("conv.out_proj", shape.hidden, shape.hidden),
            norm("operator_norm", shape.hidden),
        ),
        kv=KvCache(KvKind.STATE, state_bytes=shape.hidden * (kernel - 1) * dtype_bytes),
    )


def _state(channels: int, kernel: int, matrix: int, config: Fields, dtype_bytes: int) -> KvCache:
    wide = config.text("mamba_ssm_dtype") == "float32"
    matrix_bytes = matrix * (_FLOAT32_BYTES if wide else dtype_bytes)
    return KvCache(KvKind.STATE, state_bytes=channels * (kernel - 1) * dtype_bytes + matrix_bytes)


def state_divisors(config: Fields) -> tuple[Divisor, ...]:
    """Heads and groups that the state is split by (vllm.md rule 17); one group is repeated instead."""
    counts = (_GDN_KEY_HEADS, _GDN_VALUE_HEADS, _KDA_HEADS, _MAMBA_HEADS, _MAMBA_GROUPS)
    found = ((count.names[0], config.get(count)) for count in counts)
    return tuple(
        Divisor(name, size)
        for name, size in found
        if size is not None and not (name == _MAMBA_GROUPS.names[0] and size == 1)
    )
