"""What preflight reported (docs/decisions/0012-the-runtime-contract.md).

A report comes out of a container in which foreign code ran. So it is read like any other input from outside:
bounded, every type checked, and what does not fit makes it no report at all. It never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bowsprit.facts.checked import Damaged, count, finite, items, mapping, text

MAX_REPORT_CHARACTERS = 16_384
"""Four times what the runtime writes; a ConfigMap could hold a megabyte."""
_VERSION = 1
_MOST_ENTRIES = 32


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
    """As reported; read by facts_from_told."""

    @property
    def waits_for_network(self) -> bool:
        """Nothing but the network was at fault: another try may end otherwise."""
        return self.verdict is Verdict.BROKEN and all(each.blame == "network" for each in self.faults)


def parse_report(told: str) -> Report | None:
    """The report that `told` is; None for anything else."""
    if len(told) > MAX_REPORT_CHARACTERS:
        return None
    try:
        return _report(json.loads(told, parse_float=finite, parse_constant=finite))
    except (ValueError, RecursionError):
        return None


def _report(content: Any) -> Report:
    whole = mapping(content)
    if whole.get("v") != _VERSION:
        raise Damaged
    faults = tuple(_fault(mapping(each)) for each in items(whole.get("faults", []), _MOST_ENTRIES))
    verdict = Verdict(text(whole.get("verdict")))
    if bool(faults) is not (verdict in (Verdict.BROKEN, Verdict.UNJUDGED)):
        raise Damaged
    return Report(
        verdict=verdict,
        faults=faults,
        warnings=tuple(text(each) for each in items(whole.get("warnings", []), _MOST_ENTRIES)),
        engine={
            text(name): text(version)
            for name, version in mapping(whole.get("engine", {})).items()
            if version is not None
        },
        plugins=tuple(_plugin(mapping(each)) for each in items(whole.get("plugins", []), _MOST_ENTRIES)),
        facts=mapping(whole.get("facts", {})),
    )


def _fault(entry: Mapping[str, Any]) -> Fault:
    reason = text(entry.get("reason"))
    if not re.fullmatch("[A-Z][A-Za-z0-9]{1,63}", reason):
        raise Damaged
    return Fault(reason, text(entry.get("blame")), text(entry.get("message")))


def _plugin(entry: Mapping[str, Any]) -> SeenPlugin:
    return SeenPlugin(
        name=text(entry.get("name")),
        version=text(entry.get("version")),
        architectures=tuple(text(each) for each in items(entry.get("architectures", []), _MOST_ENTRIES)),
        more=count(entry.get("more", 0)),
    )
