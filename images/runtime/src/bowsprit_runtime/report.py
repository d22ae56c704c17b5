"""The one thing that comes out of an init container or preflight: a verdict in at most 4,096 bytes.

The kubelet cuts a termination message at 4,096 bytes, and half a JSON object is none. So the report is shrunk
by its own rules: what decides is kept to the last, what only explains goes first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bowsprit_runtime import reasons

TERMINATION_LOG = "/dev/termination-log"
LIMIT = 4096
"""Bytes of a termination message that the kubelet keeps."""

VERSION = 1

EXIT_FINE = 0
EXIT_BROKEN = 1
EXIT_NO_VERDICT = 70
"""EX_SOFTWARE of sysexits.h: the judging itself failed."""
EXIT_NETWORK = 75
"""EX_TEMPFAIL of sysexits.h: try again later."""

BLAMES = ("plugin", "image", "model", "spec", "network")


class Fault(Exception):
    """Why something cannot work: a reason of reasons.py, who has to act, and a message for that person."""

    def __init__(self, reason: str, blame: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.blame, self.message = reason, blame, message

    def as_json(self) -> dict[str, str]:
        return {"reason": self.reason, "blame": self.blame, "message": self.message}


@dataclass
class Report:
    """What is said to the operator. Faults stand in the order in which they decide."""

    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    engine: dict[str, Any] = field(default_factory=dict)
    plugins: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        if any(fault.reason not in reasons.NOT_JUDGED for fault in self.faults):
            return "Broken"
        if self.faults:
            return "Unjudged"
        return "Warnings" if self.warnings else "Ok"

    @property
    def exit_code(self) -> int:
        deciding = [fault for fault in self.faults if fault.reason not in reasons.NOT_JUDGED]
        if not deciding:
            undecided = any(fault.reason in reasons.NO_VERDICT for fault in self.faults)
            return EXIT_NO_VERDICT if undecided else EXIT_FINE
        return EXIT_NETWORK if all(fault.blame == "network" for fault in deciding) else EXIT_BROKEN

    def as_json(self) -> dict[str, Any]:
        ordered = sorted(self.faults, key=lambda fault: fault.reason in reasons.NOT_JUDGED)
        return {
            "v": VERSION,
            "verdict": self.verdict,
            "faults": [fault.as_json() for fault in ordered],
            "warnings": self.warnings,
            "engine": self.engine,
            "plugins": self.plugins,
            "facts": self.facts,
        }


def encoded(report: Mapping[str, Any], limit: int = LIMIT) -> bytes:
    """One line of JSON of at most `limit` bytes; the verdict and the first fault's reason stay."""
    content = dict(report)
    for shrink in _SHRINKS:
        if len(_line(content)) <= limit:
            break
        content = shrink(content)
    return _line(content)


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


Shrink = Callable[[dict[str, Any]], dict[str, Any]]


def cut(text: str, limit: int) -> str:
    """At most `limit` characters; the middle goes: messages begin with the matter and end with the cause."""
    if len(text) <= limit:
        return text
    head = (limit - 3) * 2 // 3
    return f"{text[:head]} … {text[len(text) - (limit - 3 - head) :]}"


def _texts(faults: int, length: int, warnings: int) -> Shrink:
    """Keep so many faults and warnings, each of at most `length` characters."""

    def shrink(content: dict[str, Any]) -> dict[str, Any]:
        kept = [{**fault, "message": cut(fault["message"], length)} for fault in content["faults"][:faults]]
        told = [cut(warning, length) for warning in content["warnings"][:warnings]]
        more = len(content["warnings"]) - len(told)
        if more > 0 and told:
            told.append(f"and {more} more; see the pod's log")
        return {**content, "faults": kept, "warnings": told}

    return shrink


def _plugins(count: int, names: int) -> Shrink:
    """Keep so many plugins, each with so many architectures."""

    def shrink(content: dict[str, Any]) -> dict[str, Any]:
        kept = []
        for plugin in content["plugins"][:count]:
            architectures = plugin.get("architectures", [])
            more = plugin.get("more", 0) + max(0, len(architectures) - names)
            kept.append({**plugin, "architectures": architectures[:names], "more": more})
        return {**content, "plugins": kept}

    return shrink


def _without_facts(*names: str) -> Shrink:
    def shrink(content: dict[str, Any]) -> dict[str, Any]:
        return {**content, "facts": {k: v for k, v in content["facts"].items() if k not in names}}

    return shrink


_SHRINKS: tuple[Shrink, ...] = (
    _plugins(8, 8),
    _texts(8, 600, 8),
    _texts(6, 400, 6),
    _plugins(4, 2),
    _texts(4, 300, 3),
    _without_facts("checkpoint"),
    _without_facts("weights"),
    _without_facts("config"),
    _plugins(0, 0),
    _without_facts("architecture", "supportsPP", "maxModelLen", "dtype", "quantization"),
    _texts(1, 300, 0),
    _texts(1, 100, 0),
)
