"""`status.revisions`, as it is written and read back: what serves, what is asked for, how far that is and
whether it has failed.

The next operator goes on from here. People edit: an entry that is damaged counts as none.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bowsprit.status.observed import Failed, Observed


@dataclass(frozen=True, slots=True)
class Progress:
    ready: int
    """Most replicas of the target revision that were ready at once."""
    since: str
    """RFC 3339: when that was reached, or the revision got its first GPUs."""


def revisions_to_status(observed: Observed, progress: Progress | None) -> dict[str, Any]:
    """Without what there is not."""
    entries = {
        "serving": observed.serving,
        "target": observed.target,
        "progress": progress and asdict(progress),
        "failed": observed.failed and asdict(observed.failed),
    }
    return {name: entry for name, entry in entries.items() if entry is not None}


def recorded_serving(status: Mapping[str, Any] | None) -> str | None:
    """The revision that served last."""
    return _hash(status, "serving")


def recorded_target(status: Mapping[str, Any] | None) -> str | None:
    """The revision that the spec asked for last."""
    return _hash(status, "target")


def recorded_failure(status: Mapping[str, Any] | None) -> Failed | None:
    entry = _entry(status, "failed")
    fields = [entry.get(name) for name in ("revision", "reason", "message", "time")]
    texts = [field for field in fields if isinstance(field, str) and field]
    return Failed(*texts) if len(texts) == len(fields) else None


def recorded_progress(status: Mapping[str, Any] | None, target: str | None) -> Progress | None:
    """Of that target."""
    entry = _entry(status, "progress")
    ready, since = entry.get("ready"), entry.get("since")
    if recorded_target(status) != target or not isinstance(ready, int) or not isinstance(since, str):
        return None
    try:
        seconds_of(since)
    except ValueError:
        return None
    return Progress(ready, since)


def seconds_of(time: str) -> int:
    """Since 1970, of an RFC 3339 time as Kubernetes writes it; ValueError when it is none."""
    match = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", time, re.ASCII)
    if match is None:
        raise ValueError(f"{time} is no time")
    return calendar.timegm(tuple(int(part) for part in match.groups()))


def _hash(status: Mapping[str, Any] | None, name: str) -> str | None:
    found = _revisions(status).get(name)
    return found if isinstance(found, str) and found else None


def _entry(status: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    entry = _revisions(status).get(name)
    return entry if isinstance(entry, Mapping) else {}


def _revisions(status: Mapping[str, Any] | None) -> Mapping[str, Any]:
    revisions = (status or {}).get("revisions")
    return revisions if isinstance(revisions, Mapping) else {}
