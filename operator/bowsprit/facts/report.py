"""What preflight reported (docs/decisions/0012-the-runtime-contract.md), and the facts in it.

A report comes out of a container in which foreign code ran. So it is read like any other input from outside:
bounded, every type checked, and what does not fit makes it no report at all. It never raises.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeGuard

from bowsprit.api.reasons import Reason
from bowsprit.facts.config import MAX_BYTES, facts_from_config
from bowsprit.facts.model import FactsError, MeasuredWeights, ModelFacts

MAX_REPORT_CHARACTERS = 16_384
"""Four times what the runtime writes; a ConfigMap could hold a megabyte."""
_VERSION = 1
_MOST_TEXT = 1000
_MOST_ENTRIES = 32
_MOST_LAYERS = 10_000
_KNOWN_BETTER = ("supportsPP", "maxModelLen", "weights")
"""Facts that the engine tells better than its config.json."""
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")


class Verdict(StrEnum):
    OK = "Ok"
    WARNINGS = "Warnings"
    UNJUDGED = "Unjudged"
    BROKEN = "Broken"


@dataclass(frozen=True, slots=True)
class Fault:
    reason: str
    """One of bowsprit.api.reasons when the runtime is not newer than the operator."""
    blame: str
    """plugin, image, model, spec or network: who has to act."""
    message: str


@dataclass(frozen=True, slots=True)
class SeenPlugin:
    """A plugin as it was installed."""

    name: str
    version: str
    architectures: tuple[str, ...]
    more: int
    """Architectures beyond those that are named."""


@dataclass(frozen=True, slots=True)
class Report:
    verdict: Verdict
    faults: tuple[Fault, ...] = ()
    """The one that decides first."""
    warnings: tuple[str, ...] = ()
    engine: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Versions, by vllm, python and torch."""
    plugins: tuple[SeenPlugin, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """As reported; read by facts_from_report."""

    @property
    def waits_for_network(self) -> bool:
        """Nothing but the network was at fault: another try may end otherwise."""
        return self.verdict is Verdict.BROKEN and all(each.blame == "network" for each in self.faults)


class _Damaged(ValueError):
    """Not a report of ours."""


def parse_report(text: str) -> Report | None:
    """The report that `text` is; None for anything else."""
    if len(text) > MAX_REPORT_CHARACTERS:
        return None
    try:
        return _report(json.loads(text))
    except (ValueError, RecursionError):
        return None


def facts_from_report(
    report: Report, overrides: Mapping[str, Any], dtype: str | None = None
) -> ModelFacts | FactsError:
    """Facts by the config.json in the report, read as a user's would be, and what the engine itself knew
    better: the bytes of every rank, pipeline stages, the longest context. The rest is as in
    facts_from_config."""
    config = _config(report.facts.get("config"))
    if config is None:
        message = (
            "preflight could not tell config.json (its report was too long, or it lacked what it needed): "
            "name a ConfigMap with the model's config.json in spec.model.config"
        )
        return FactsError(Reason.CONFIG_MISSING, "spec.model.config", message)
    facts = facts_from_config(config, overrides=overrides, dtype=dtype)
    return facts if isinstance(facts, FactsError) else with_reported(report, facts)


def with_reported(report: Report, facts: ModelFacts) -> ModelFacts:
    """`facts`, from whatever config.json, with what the engine itself knew better."""
    told = {name: report.facts[name] for name in _KNOWN_BETTER if name in report.facts}
    if not told:
        return facts
    staged, longest = told.get("supportsPP"), told.get("maxModelLen")
    return replace(
        facts,
        digest=_digest(facts.digest, told),
        stageable=staged if isinstance(staged, bool) else facts.stageable,
        max_model_len=longest if _is_count(longest) else facts.max_model_len,
        measured=_measured(told.get("weights"), len(facts.layers)),
    )


def _digest(known: str, told: Mapping[str, Any]) -> str:
    """Of what went in and not of what is made of it: a later operator may read it otherwise, and rolls no
    pod for that."""
    return hashlib.sha256(json.dumps([known, told], sort_keys=True).encode()).hexdigest()[:16]


def _config(encoded: Any) -> bytes | None:
    """config.json itself: base64 of zlib. A few bytes may unpack to gigabytes, so it is cut off."""
    if not isinstance(encoded, str):
        return None
    try:
        return zlib.decompressobj().decompress(base64.b64decode(encoded, validate=True), MAX_BYTES)
    except (binascii.Error, ValueError, zlib.error):
        return None


def _measured(weights: Any, layers: int) -> tuple[MeasuredWeights, ...]:
    """Of every tensor size whose layers are those of config.json; a damaged one is not used."""
    if not isinstance(weights, Mapping):
        return ()
    found = []
    for size, entry in weights.items():
        try:
            measured = _weights(size, _mapping(entry))
        except _Damaged:
            continue
        if len(measured.layers) == layers:
            found.append(measured)
    return tuple(sorted(found, key=lambda each: each.tensor))


def _weights(size: Any, entry: Mapping[str, Any]) -> MeasuredWeights:
    if not isinstance(size, str) or not re.fullmatch("[1-9][0-9]{0,2}", size):
        raise _Damaged
    layers: list[int] = []
    for run in _items(entry.get("layers"), _MOST_LAYERS):
        if not isinstance(run, list) or len(run) != 2:
            raise _Damaged
        times, size_of_each = _count(run[0]), _count(run[1])
        if len(layers) + times > _MOST_LAYERS:
            raise _Damaged
        layers += [size_of_each] * times
    tied = entry.get("tied")
    if not layers or not isinstance(tied, bool):
        raise _Damaged
    embedding, head, other = (_count(entry.get(name)) for name in ("embedding", "head", "other"))
    return MeasuredWeights(int(size), tuple(layers), embedding, head, other, tied)


def _report(content: Any) -> Report:
    whole = _mapping(content)
    if whole.get("v") != _VERSION:
        raise _Damaged
    faults = tuple(_fault(_mapping(each)) for each in _items(whole.get("faults", []), _MOST_ENTRIES))
    verdict = Verdict(_text(whole.get("verdict")))
    if bool(faults) is not (verdict in (Verdict.BROKEN, Verdict.UNJUDGED)):
        raise _Damaged
    return Report(
        verdict=verdict,
        faults=faults,
        warnings=tuple(_text(each) for each in _items(whole.get("warnings", []), _MOST_ENTRIES)),
        engine={
            _text(name): _text(version)
            for name, version in _mapping(whole.get("engine", {})).items()
            if version is not None
        },
        plugins=tuple(_plugin(_mapping(each)) for each in _items(whole.get("plugins", []), _MOST_ENTRIES)),
        facts=_mapping(whole.get("facts", {})),
    )


def _fault(entry: Mapping[str, Any]) -> Fault:
    reason = _text(entry.get("reason"))
    if not re.fullmatch("[A-Z][A-Za-z0-9]{1,63}", reason):
        raise _Damaged
    return Fault(reason, _text(entry.get("blame")), _text(entry.get("message")))


def _plugin(entry: Mapping[str, Any]) -> SeenPlugin:
    return SeenPlugin(
        name=_text(entry.get("name")),
        version=_text(entry.get("version")),
        architectures=tuple(_text(each) for each in _items(entry.get("architectures", []), _MOST_ENTRIES)),
        more=_count(entry.get("more", 0)),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _Damaged
    return value


def _items(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise _Damaged
    return value


def _text(value: Any) -> str:
    """One line of printable text: it ends up in conditions and on terminals."""
    if not isinstance(value, str):
        raise _Damaged
    return _UNPRINTABLE.sub(" ", value)[:_MOST_TEXT].strip()


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 10**15


def _count(value: Any) -> int:
    if value == 0 or _is_count(value):
        return int(value)
    raise _Damaged
