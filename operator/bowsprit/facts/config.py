"""ModelFacts from a model's config.json: the way in for planning without a download.

Pure and total: whatever the bytes are, the answer is facts or a FactsError that says which field is wrong,
what was found and what is expected. The order is: parse, merge the overrides as vLLM does, find the text
part, read shape and precision, say what each layer is made of, add up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bowsprit.api.reasons import Reason
from bowsprit.facts.assemble import assemble, text_part
from bowsprit.facts.checked import finite
from bowsprit.facts.context import served_bytes
from bowsprit.facts.fields import Fields, Unusable, invalid
from bowsprit.facts.index import corrected, total_size
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.facts.packing import packed

MAX_BYTES = 4 * 1024 * 1024
"""Largest config.json that is read; a ConfigMap holds 1 MiB, the largest published one 300 KiB."""
MAX_INDEX_BYTES = 64 * 1024 * 1024

CONFIG, TOTAL_SIZE = "config", "totalSize"
"""Of ModelFacts.told: the config.json before overrides, and what the index adds up to."""

_PLAIN_OBJECTS = frozenset({"quantization_config", "compression_config", "linear_attn_config"})
"""Objects that are no nested configs to transformers, in spite of their names."""


def facts_from_config(
    config_json: str | bytes,
    *,
    overrides: Mapping[str, Any] | None = None,
    dtype: str | None = None,
    index_json: str | bytes | None = None,
) -> ModelFacts | FactsError:
    """Facts of a model from its config.json, with `overrides` (hfOverrides) merged in first, and served in
    `dtype` (a key of DTYPE_BYTES) instead of the config's.

    `index_json` is model.safetensors.index.json: its total size makes the weights' sum exact. Never raises.
    """
    try:
        own = _object(config_json, "config.json", MAX_BYTES)
        config = merged(own, _plain(overrides or {}))
        total = None
        if index_json is not None:
            total = total_size(Fields(_object(index_json, "model.safetensors.index.json", MAX_INDEX_BYTES)))
        whole = Fields(config)
        facts = assemble(whole, _digest(config, total, dtype), dtype)
        if total is None:
            return replace(facts, told={CONFIG: packed(own)})
        facts = corrected(facts, served_bytes(total, text_part(whole)[0], whole, facts.dtype))
        return replace(facts, told={CONFIG: packed(own), TOTAL_SIZE: total})
    except Unusable as unusable:
        return unusable.error
    except RecursionError:
        return FactsError(
            Reason.CONFIG_INVALID,
            "config.json",
            "config.json is nested too deeply; expected fewer than 100 levels",
        )


def config_digest(config_json: str | bytes) -> str:
    """Of what a config.json says, whatever its spelling. It must be one that gave facts."""
    return _digest(json.loads(config_json), None, None)


def merged(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """hfOverrides as vLLM applies them (config/model.py `_apply_dict_overrides`).

    Nested configs (text_config, vision_config, …) are merged to any depth; everything else at the top,
    rope_scaling and quantization_config too, is replaced.
    """
    nested = {key for key in config if key.endswith("_config")} - _PLAIN_OBJECTS
    changed = {
        key: _merged_deeply(config[key], value) if key in nested else value
        for key, value in overrides.items()
    }
    return {**config, **changed}


def _merged_deeply(old: Any, new: Any) -> Any:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    return {**old, **{key: _merged_deeply(old.get(key), value) for key, value in new.items()}}


def _digest(config: Mapping[str, Any], total: int | None, dtype: str | None) -> str:
    inputs = [config, total] if dtype is None else [config, total, dtype]
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _object(text: str | bytes, name: str, limit: int) -> dict[str, Any]:
    if len(text) > limit:
        raise invalid(name, f"{len(text)} bytes", f"at most {limit}")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_float=finite, parse_constant=finite)
    except ValueError as wrong:
        raise Unusable(Reason.CONFIG_INVALID, name, f"{name} is not valid JSON: {wrong}") from None
    if not isinstance(value, dict):
        raise invalid(name, value, "a JSON object")
    return value


def _plain(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides as JSON values; they come from YAML, which knows dates and NaN."""
    try:
        plain = json.loads(json.dumps(dict(overrides), allow_nan=False))
    except (TypeError, ValueError) as wrong:
        raise Unusable(
            Reason.CONFIG_INVALID,
            "hfOverrides",
            f"architecture.hfOverrides cannot be written as JSON: {wrong}",
        ) from None
    assert isinstance(plain, dict)
    return plain


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {json.dumps(key)[:80]} stands twice in one object")
        found[key] = value
    return found
