"""Which layer holds what: full or sliding attention, MLA, a state; a dense MLP, experts, or nothing.

Configs say it as a list per layer, as a period, as a string of letters, or as indices of exceptions. Every
way ends here as one `Kind` a layer, so that no other module knows how it was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from bowsprit.facts.attention import WINDOW
from bowsprit.facts.families import FULL_ATTENTION_PERIOD
from bowsprit.facts.fields import Count, Fields, invalid
from bowsprit.facts.shape import Shape


class Mix(Enum):
    FULL = auto()
    SLIDING = auto()
    GATED_DELTA = auto()
    KIMI_DELTA = auto()
    MAMBA = auto()
    CONVOLUTION = auto()
    NONE = auto()


class Feed(Enum):
    DENSE = auto()
    EXPERTS = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class Kind:
    mix: Mix
    feed: Feed


_LAYER_TYPES = {
    "full_attention": Mix.FULL,
    "attention": Mix.FULL,
    "global": Mix.FULL,
    "global_attention": Mix.FULL,
    "sliding_attention": Mix.SLIDING,
    "chunked_attention": Mix.SLIDING,
    "local": Mix.SLIDING,
    "local_attention": Mix.SLIDING,
    "linear_attention": Mix.GATED_DELTA,
    "mamba": Mix.MAMBA,
    "mamba2": Mix.MAMBA,
    "conv": Mix.CONVOLUTION,
}
_LETTERS = {
    "M": Kind(Mix.MAMBA, Feed.NONE),
    "*": Kind(Mix.FULL, Feed.NONE),
    "-": Kind(Mix.NONE, Feed.DENSE),
    "E": Kind(Mix.NONE, Feed.EXPERTS),
}
"""hybrid_override_pattern of Nemotron-H: one block a layer."""

_MAX_INDEX = 10_000
_FULL_INTERVAL = Count(("full_attention_interval",), 1000)
_SLIDING_PATTERN = Count(
    ("sliding_window_pattern", "_sliding_window_pattern", "no_rope_layer_interval"), 1000
)
_MAX_WINDOW_LAYERS = Count(("max_window_layers",), _MAX_INDEX, 0)
_FIRST_DENSE = Count(("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"), _MAX_INDEX, 0)
_STEP = Count(
    ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "moe_layer_freq"), 1000
)


def layer_kinds(config: Fields, shape: Shape, *, has_experts: bool) -> tuple[Kind, ...]:
    letters = config.text("hybrid_override_pattern")
    if letters is not None:
        return _lettered(config, letters, shape.layers)
    mixes = _mixes(config, shape)
    feeds = _feeds(config, shape.layers) if has_experts else (Feed.DENSE,) * shape.layers
    return tuple(Kind(mix, feed) for mix, feed in zip(mixes, feeds, strict=True))


def _lettered(config: Fields, letters: str, layers: int) -> tuple[Kind, ...]:
    if len(letters) != layers or not set(letters) <= set(_LETTERS):
        raise invalid(
            config.path("hybrid_override_pattern"),
            letters,
            f"one of {' '.join(_LETTERS)} for each of {layers} layers",
        )
    return tuple(_LETTERS[letter] for letter in letters)


def _mixes(config: Fields, shape: Shape) -> tuple[Mix, ...]:
    types = config.texts("layer_types") or config.texts("layers_block_type")
    if types:
        return _typed(config, types, shape.layers)
    full = set(config.counts("linear_attn_config.full_attn_layers"))
    if full:
        # Counted from 1 (vLLM transformers_utils/configs/kimi_linear.py).
        return tuple(Mix.FULL if i + 1 in full else Mix.KIMI_DELTA for i in range(shape.layers))
    every = config.get(_FULL_INTERVAL)
    if every:
        return tuple(Mix.FULL if (i + 1) % every == 0 else Mix.GATED_DELTA for i in range(shape.layers))
    return _windows(config, shape)


def _typed(config: Fields, types: tuple[str, ...], layers: int) -> tuple[Mix, ...]:
    if len(types) < layers:
        raise invalid(config.path("layer_types"), f"{len(types)} items", f"one for each of {layers} layers")
    unknown = next((name for name in types if name not in _LAYER_TYPES), None)
    if unknown is not None:
        raise invalid(config.path("layer_types"), unknown, f"one of {', '.join(_LAYER_TYPES)}")
    return tuple(_LAYER_TYPES[name] for name in types[:layers])


def _windows(config: Fields, shape: Shape) -> tuple[Mix, ...]:
    layers = range(shape.layers)
    if not window_of(config):
        return (Mix.FULL,) * shape.layers
    letters = config.raw("sliding_window_pattern")
    if isinstance(letters, str) and letters and set(letters) <= {"L", "G"}:
        return tuple(Mix.SLIDING if letters[i % len(letters)] == "L" else Mix.FULL for i in layers)
    every = config.get(_SLIDING_PATTERN) or FULL_ATTENTION_PERIOD.get(shape.family)
    if every:
        return tuple(Mix.FULL if (i + 1) % every == 0 else Mix.SLIDING for i in layers)
    if config.raw("use_sliding_window") is None:
        return (Mix.SLIDING,) * shape.layers
    first = config.get(_MAX_WINDOW_LAYERS) or 0
    return tuple(Mix.SLIDING if i >= first else Mix.FULL for i in layers)


def window_of(config: Fields) -> int:
    """Tokens that a sliding layer sees; 0 when none slides."""
    if not config.flag("use_sliding_window", default=True):
        return 0
    return config.get(WINDOW) or 0


def _feeds(config: Fields, layers: int) -> tuple[Feed, ...]:
    dense = set(config.counts("mlp_only_layers"))
    first = config.get(_FIRST_DENSE) or 0
    listed = set(config.counts("moe_layers"))
    switches = config.raw("moe_layer_freq")
    if isinstance(switches, list):
        on = config.counts("moe_layer_freq")
        return tuple(Feed.EXPERTS if i < len(on) and on[i] else Feed.DENSE for i in range(layers))
    step = config.get(_STEP) or 1
    counted_from = 0 if config.raw("moe_layer_freq") is not None else 1

    def routed(i: int) -> bool:
        if listed:
            return i in listed
        return i >= first and i not in dense and (i + counted_from) % step == 0

    return tuple(Feed.EXPERTS if routed(i) else Feed.DENSE for i in range(layers))
