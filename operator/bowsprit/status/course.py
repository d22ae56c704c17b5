"""What a check can find, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Course(StrEnum):
    """What becomes of a matter when nobody touches the spec."""

    STALLED = "Stalled"
    """Nothing: only a change by the user helps."""
    BLOCKED = "Blocked"
    """It goes on by itself as soon as something outside changes: GPUs come free, a ConfigMap appears."""
    WORKING = "Working"
    """Bowsprit or the cluster is at it."""


@dataclass(frozen=True, slots=True)
class Finding:
    reason: str
    message: str
    course: Course
