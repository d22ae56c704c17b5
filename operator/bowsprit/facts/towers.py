"""Bytes of what stands beside the language model: vision and audio encoders and their projectors.

A tower is a plain transformer with its own field names, so its size is an estimate from the few fields that
every tower has. One that does not say enough counts nothing: the safetensors index, when given, corrects
the total.
"""

from __future__ import annotations

from bowsprit.facts.fields import Count, Fields
from bowsprit.facts.shape import Shape

_DEPTH = Count(("depth", "num_hidden_layers", "encoder_layers", "layers"), 1000)
_WIDTH = Count(("embed_dim", "hidden_size", "d_model", "width"), 1_000_000)
_MLP = Count(("intermediate_size", "encoder_ffn_dim"), 10_000_000)
_MLP_RATIO = Count(("mlp_ratio",), 64)
_MERGE = Count(("spatial_merge_size",), 64)
_GLOBAL_DEPTH = Count(("num_global_layers",), 1000)

_GATED = frozenset({"pixtral", "qwen2_5_vl", "qwen2_5_omni_vision_encoder", "gemma4_vision"})
"""model_type of towers with three MLP matrices; the others have two."""


def towers_bytes(config: Fields, shape: Shape, dtype_bytes: int) -> int:
    sections = (config.section(name) for name in ("vision_config", "audio_config"))
    return sum(_values(tower, config, shape) for tower in sections if tower) * dtype_bytes


def _values(tower: Fields, config: Fields, shape: Shape) -> int:
    depth, width = tower.get(_DEPTH), tower.get(_WIDTH)
    if depth is None or width is None:
        return 0
    mlp = tower.get(_MLP) or (tower.get(_MLP_RATIO) or 4) * width
    matrices = 3 if _is_gated(tower, config) else 2
    layers = depth + (tower.get(_GLOBAL_DEPTH) or 0)
    merged = width * (tower.get(_MERGE) or config.get(_MERGE) or 1) ** 2
    mergers = 1 + len(tower.counts("deepstack_visual_indexes"))
    projector = merged * merged + merged * shape.hidden
    return layers * (4 * width * width + matrices * width * mlp) + mergers * projector


def _is_gated(tower: Fields, config: Fields) -> bool:
    return bool({tower.text("model_type"), config.text("model_type")} & _GATED)
