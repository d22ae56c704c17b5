"""Facts out of what was told of a model: by a report of preflight, or long ago and kept in a revision.

Both say it in the same words (docs/decisions/0012-the-runtime-contract.md): config.json, and what engine and
checkpoint know better. It is checked like any input from outside: what does not fit is not used.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bowsprit.api.reasons import Reason
from bowsprit.facts.checked import Damaged, count, is_count, items, mapping
from bowsprit.facts.config import CONFIG, MAX_BYTES, TOTAL_SIZE, facts_from_config
from bowsprit.facts.index import Checkpoint, weighed
from bowsprit.facts.model import FactsError, MeasuredWeights, ModelFacts
from bowsprit.facts.packing import unpacked

_MOST_LAYERS = 10_000
_KNOWN_BETTER = ("supportsPP", "maxModelLen", "checkpoint", "weights")
"""What engine and checkpoint tell better than config.json."""


def facts_from_told(
    told: Mapping[str, Any], overrides: Mapping[str, Any], dtype: str | None = None
) -> ModelFacts | FactsError:
    """Facts by the config.json in it, read as a user's would be, and what was known better: bytes of the
    checkpoint and of every rank, pipeline stages, the longest context. The rest is as in facts_from_config.
    """
    config = unpacked(told.get(CONFIG), MAX_BYTES)
    if config is None:
        message = (
            "preflight could not tell config.json (its report was too long, or it lacked what it needed): "
            "name a ConfigMap with the model's config.json in spec.model.config"
        )
        return FactsError(Reason.CONFIG_MISSING, "spec.model.config", message)
    total = told.get(TOTAL_SIZE)
    index = json.dumps({"metadata": {"total_size": total}}) if is_count(total) else None
    facts = facts_from_config(config, overrides=overrides, dtype=dtype, index_json=index)
    return facts if isinstance(facts, FactsError) else with_told(told, facts)


def with_told(told: Mapping[str, Any], facts: ModelFacts) -> ModelFacts:
    """`facts`, from whatever config.json, with what was known better."""
    better = {name: told[name] for name in _KNOWN_BETTER if name in told}
    if not better:
        return facts
    checkpoint = _checkpoint(better.get("checkpoint"))
    if checkpoint is not None and len(checkpoint.layers) == len(facts.layers):
        facts = weighed(facts, checkpoint)
    staged, longest = better.get("supportsPP"), better.get("maxModelLen")
    return replace(
        facts,
        digest=_digest(facts.digest, better),
        stageable=staged if isinstance(staged, bool) else facts.stageable,
        max_model_len=longest if is_count(longest) else facts.max_model_len,
        measured=_measured(better.get("weights"), len(facts.layers)),
        told={**facts.told, **better},
    )


def _digest(known: str, told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([known, told], sort_keys=True).encode()).hexdigest()[:16]


def _checkpoint(entry: Any) -> Checkpoint | None:
    """Bytes by what they are of; None when they were not told, or are damaged."""
    try:
        sizes = mapping(entry)
        embedding, head, other = (count(sizes.get(name)) for name in ("embedding", "head", "other"))
        return Checkpoint(_layers(sizes), embedding, head, other)
    except Damaged:
        return None


def _measured(weights: Any, layers: int) -> tuple[MeasuredWeights, ...]:
    """Of every tensor size whose layers are those of config.json; a damaged one is not used."""
    if not isinstance(weights, Mapping):
        return ()
    found = []
    for size, entry in weights.items():
        try:
            measured = _weights(size, mapping(entry))
        except Damaged:
            continue
        if len(measured.layers) == layers:
            found.append(measured)
    return tuple(sorted(found, key=lambda each: each.tensor))


def _weights(size: Any, entry: Mapping[str, Any]) -> MeasuredWeights:
    tied = entry.get("tied")
    if not isinstance(size, str) or not re.fullmatch("[1-9][0-9]{0,2}", size) or not isinstance(tied, bool):
        raise Damaged
    embedding, head, other = (count(entry.get(name)) for name in ("embedding", "head", "other"))
    return MeasuredWeights(int(size), _layers(entry), embedding, head, other, tied)


def _layers(entry: Mapping[str, Any]) -> tuple[int, ...]:
    """Bytes of each layer, out of runs of [how many, bytes of each]."""
    layers: list[int] = []
    for run in items(entry.get("layers"), _MOST_LAYERS):
        if not isinstance(run, list) or len(run) != 2:
            raise Damaged
        times, size = count(run[0]), count(run[1])
        if len(layers) + times > _MOST_LAYERS:
            raise Damaged
        layers += [size] * times
    if not layers:
        raise Damaged
    return tuple(layers)
