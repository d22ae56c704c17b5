"""The activation dtype and the longest context, as vLLM derives them from a config.

Sources: vLLM config/model.py `_resolve_auto_dtype` and `_get_and_verify_max_len`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bowsprit.facts.fields import Count, Fields, invalid

_LENGTHS = tuple(
    Count((name,), maximum=1_000_000_000)
    for name in (
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "model_max_length",
        "max_target_positions",
        "max_sequence_length",
        "max_seq_length",
        "seq_len",
    )
)
_ALREADY_SCALED = frozenset({"su", "longrope", "llama3", "yarn", "default", "mrope", "proportional"})
"""rope types whose factor is in max_position_embeddings already."""

_DTYPES = {"bfloat16": 2, "float16": 2, "half": 2, "float32": 2, "float": 2, "auto": 2}
_SERVED_AS = {"half": "float16", "float32": "bfloat16", "float": "bfloat16", "auto": "bfloat16"}
"""dtype=auto serves float32 checkpoints, and those that do not say, in 16 bits."""


def read_dtype(text: Fields, whole: Fields) -> tuple[str, int]:
    """(activation dtype, bytes of a value)."""
    for config in (text, whole):
        for name in ("dtype", "torch_dtype"):
            said = config.text(name)
            if said is not None:
                dtype = said.removeprefix("torch.")
                if dtype not in _DTYPES:
                    raise invalid(config.path(name), said, "bfloat16, float16 or float32")
                return _SERVED_AS.get(dtype, dtype), _DTYPES[dtype]
    return "bfloat16", 2


def stored_bytes(text: Fields, whole: Fields) -> int:
    """Bytes of a value on disk: 4 when the checkpoint says float32."""
    said = {config.text(name) for config in (text, whole) for name in ("dtype", "torch_dtype")}
    return 4 if said & {"float32", "torch.float32", "float"} else 2


def longest_context(config: Fields, family: str) -> int | None:
    """Tokens; None when the config does not say."""
    lengths = [length for count in _LENGTHS if (length := config.get(count)) is not None]
    if not lengths:
        return None
    if "gemma3" in family:
        return min(lengths)
    return max(1, int(min(lengths) * max((1.0, *_factors(config)))))


def _factors(config: Fields) -> Iterator[float]:
    for name in ("rope_scaling", "rope_parameters"):
        rope = config.section(name)
        if rope is None:
            continue
        nested = [
            inner
            for key in rope.values
            if isinstance(rope.values[key], Mapping) and (inner := rope.section(key))
        ]
        for scaling in nested or [rope]:
            kind = scaling.text("rope_type") or scaling.text("type") or "default"
            factor = scaling.number("factor")
            if factor is not None and kind not in _ALREADY_SCALED:
                yield factor
