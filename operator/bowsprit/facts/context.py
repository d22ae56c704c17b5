"""The activation dtype and the longest context, as vLLM derives them from a config.

Sources: vLLM config/model.py `_resolve_auto_dtype` and `_get_and_verify_max_len`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bowsprit.facts.families import LEARNED_POSITIONS, NO_POSITION_TABLE
from bowsprit.facts.fields import Count, Fields, invalid
from bowsprit.facts.shape import Shape

_LONGEST = 1_000_000_000
_LENGTHS = tuple(
    Count((name,), maximum=_LONGEST)
    for name in (
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "max_target_positions",
        "max_sequence_length",
        "max_seq_length",
        "seq_len",
    )
)
_MODEL_MAX_LENGTH = Count(("model_max_length",), maximum=_LONGEST)
_ROPE_DIM = Count(("qk_rope_head_dim", "rotary_dim"), maximum=65_536, minimum=0)

_ALREADY_SCALED = frozenset(
    {
        *("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling"),
        *("default", "proportional"),
    }
)
"""rope types whose factor is in max_position_embeddings already, or that have none."""

_SERVED_AS = {
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "float32": "bfloat16",
    "float": "bfloat16",
    "auto": "bfloat16",
}
"""dtype=auto serves float32 checkpoints, and those that do not say, in 16 bits."""

DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
"""Bytes of a value."""

ACTIVATION_DTYPES = {
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "float32": "float32",
    "float": "float32",
}
"""vLLM's --dtype, without `auto`."""


def read_dtype(text: Fields, whole: Fields) -> str:
    """The activation dtype when --dtype does not say."""
    for config in (text, whole):
        for name in ("dtype", "torch_dtype"):
            said = config.text(name)
            if said is None:
                continue
            dtype = said.removeprefix("torch.")
            if dtype not in _SERVED_AS:
                raise invalid(config.path(name), said, "bfloat16, float16 or float32")
            return _SERVED_AS[dtype]
    return "bfloat16"


def served_bytes(on_disk: int, text: Fields, whole: Fields, dtype: str) -> int:
    """Bytes in GPU memory of a checkpoint of `on_disk` bytes that is served in `dtype`. A quantized one keeps
    most of its bytes whatever the dtype: it is never counted as larger."""
    said = {config.text(name) for config in (text, whole) for name in ("dtype", "torch_dtype")}
    stored = 4 if said & {"float32", "torch.float32", "float"} else 2
    served = DTYPE_BYTES[dtype]
    if whole.section("quantization_config") is not None:
        served = min(served, stored)
    return max(1, on_disk * served // stored)


def longest_context(config: Fields, family: str) -> int | None:
    """Tokens; None when the config does not say. `model_max_length` (Command-R) beats every other name."""
    lengths = [length for count in _LENGTHS if (length := config.get(count)) is not None]
    length = config.get(_MODEL_MAX_LENGTH) or min(lengths, default=None)
    if length is None or "gemma3" in family:
        return length
    return max(1, int(length * max(_factors(config), default=1.0)))


def _factors(config: Fields) -> Iterator[float]:
    """Factors that are still to be applied, from one rope section or from one for each layer type."""
    for name in ("rope_scaling", "rope_parameters"):
        rope = config.section(name)
        if rope is None:
            continue
        inner = [rope.section(key) for key, value in rope.values.items() if isinstance(value, Mapping)]
        for scaling in [section for section in inner if section] or [rope]:
            kind = scaling.text("rope_type") or scaling.text("type") or "default"
            factor = scaling.number("factor")
            if factor is not None and kind not in _ALREADY_SCALED:
                yield factor


def positions_bytes(config: Fields, shape: Shape, context: int | None, dtype_bytes: int) -> int:
    """The table of positions that every rank keeps: sines and cosines, or learned vectors."""
    if context is None or shape.family in NO_POSITION_TABLE:
        return 0
    if shape.family in LEARNED_POSITIONS:
        return context * shape.hidden * dtype_bytes
    rotary = config.get(_ROPE_DIM)
    if rotary is None:
        rotary = int(shape.head_dim * min(1.0, config.number("partial_rotary_factor") or 1.0))
    return context * rotary * dtype_bytes
