"""Fetching a requirement's wheel from an index, and telling from pip's log why it could not be had.

pip tells a dead network, a wheel for another Python and a missing version in one sentence ("Could not find a
version"); its log says which it was.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from bowsprit_runtime import engine_pip, reasons
from bowsprit_runtime.plugins import Plugin
from bowsprit_runtime.report import Fault


class _Sign(NamedTuple):
    """What pip's log shows, and what it means."""

    pattern: re.Pattern[str]
    reason: str
    blame: str
    message: str
    """User text; {0} is what the pattern found."""
    in_links: bool = False
    """Looked for only where pip passes over a file of the wanted version."""


_SIGNS = (
    _Sign(
        re.compile(r"Expected (\S+ \S+)(?s:.*?)Got\s+(\S+)"),
        reasons.HASH_MISMATCH,
        "spec",
        "{what} from {where} has another hash than the spec: expected {0}, got {1}.",
    ),
    _Sign(
        re.compile(r"requires? a different Python[^)\n]*\)?", re.IGNORECASE),
        reasons.REQUIRES_PYTHON,
        "plugin",
        "{what} from {where} {0}.",
        in_links=True,
    ),
    _Sign(
        re.compile(r"none of the wheel's tags (?:\(|match: )([^):\n]+)"),
        reasons.WHEEL_INCOMPATIBLE,
        "plugin",
        "{what} from {where} is for {0}, which the engine image's Python cannot install.",
        in_links=True,
    ),
    _Sign(
        re.compile(r"No sources permitted"),
        reasons.SOURCE_ONLY,
        "plugin",
        "{what} from {where} exists as source only.",
        in_links=True,
    ),
    _Sign(
        re.compile(
            r"NewConnectionError|ConnectTimeout|ReadTimeout|ConnectionReset|name resolution|ProxyError|"
            r"Name or service not known|Network is unreachable|Connection refused|Connection aborted|"
            r"IncompleteRead|ProtocolError|SSLError|certificate verify failed|Max retries exceeded|"
            r"(?:429|50[0234]) (?:Client|Server) Error"
        ),
        reasons.INDEX_UNREACHABLE,
        "network",
        "{where} could not be reached for {what} ({0}).",
    ),
    _Sign(
        re.compile(r"40[13] Client Error"),
        reasons.REQUIREMENT_NOT_FOUND,
        "spec",
        "{where} refuses to give {what} ({0}).",
    ),
    _Sign(
        re.compile(r"Could not find a version|No matching distribution"),
        reasons.REQUIREMENT_NOT_FOUND,
        "spec",
        "{where} has no {what}.",
    ),
)
"""The first that is seen decides."""


def fetch(plugin: Plugin, folder: Path) -> None:
    """Downloads the one wheel of `plugin.requirement` into `folder`. Raises Fault."""
    with tempfile.TemporaryDirectory() as scratch:
        requirements, log = Path(scratch, "requirements.txt"), Path(scratch, "log")
        line = " ".join([plugin.requirement, *(f"--hash={digest}" for digest in plugin.hashes)])
        requirements.write_text(line + "\n", encoding="utf-8")
        where = ["--index-url", plugin.index] if plugin.index else []
        done = engine_pip.run(
            "download",
            *("--no-deps", "--only-binary", ":all:", "--retries", "2", "--dest", str(folder)),
            *("--log", str(log), "--requirement", str(requirements), *where),
        )
        if done.returncode:
            said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else done.stdout
            raise fault(plugin, said, engine_pip.errors(done.stdout))


def fault(plugin: Plugin, log: str, errors: str) -> Fault:
    """Why pip could not have it, from its log; `errors` are told when the log shows nothing known."""
    what = plugin.requirement
    where = engine_pip.without_credentials(plugin.index) or "the engine image's package index"
    links = _passed_over(plugin, log)
    for sign in _SIGNS:
        seen = sign.pattern.search(links if sign.in_links else log)
        if seen:
            parts = seen.groups() or (seen.group(),)
            return Fault(sign.reason, sign.blame, sign.message.format(*parts, what=what, where=where))
    return Fault(reasons.INSTALL_FAILED, "plugin", f"pip could not download {what} from {where}: {errors}.")


def _passed_over(plugin: Plugin, log: str) -> str:
    """The lines of pip's log about files of exactly the wanted version that it did not take."""
    version = plugin.requirement.rpartition("==")[2]
    marks = (f"-{version}-", f"-{version}.tar", f"-{version}.zip")
    return "\n".join(
        line for line in log.splitlines() if "link" in line.lower() and any(mark in line for mark in marks)
    )
