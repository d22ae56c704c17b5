"""The turning points of a model's life, as Events.

They are read from two statuses, the one before and the one after, and not from what a pass did: so a pass
that changes nothing has none, and an operator that was killed between writing the status and sending the
Event loses at most that Event, never repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bowsprit.api.reasons import Condition, Reason
from bowsprit.status.compute import previous_conditions
from bowsprit.status.conditions import FALSE, TRUE

NORMAL, WARNING = "Normal", "Warning"


class EventNote(NamedTuple):
    type: str
    """Normal or Warning."""
    reason: str
    message: str


class Told(NamedTuple):
    """What a condition said."""

    status: str
    reason: str
    message: str


ABSENT = Told("", "", "")

Turn = Callable[[Told, Told], bool]


def _became(status: str) -> Turn:
    return lambda old, new: new.status == status and old.status != status


def _took(reason: Reason) -> Turn:
    return lambda old, new: new.reason == reason and old.reason != reason


def _left(status: str) -> Turn:
    return lambda old, new: old.status == status and new.status == FALSE and new.reason != Reason.SUSPENDED


class _Rule(NamedTuple):
    condition: Condition
    turn: Turn
    type: str
    reason: Reason | None
    """None takes the condition's own reason."""


_RULES: tuple[_Rule, ...] = (
    _Rule(Condition.READY, _took(Reason.SUSPENDED), NORMAL, None),
    _Rule(
        Condition.READY,
        lambda old, new: old.reason == Reason.SUSPENDED and new.reason != Reason.SUSPENDED,
        NORMAL,
        Reason.RESUMED,
    ),
    _Rule(
        Condition.STALLED,
        lambda old, new: new.status == TRUE and (old.status, old.reason) != (TRUE, new.reason),
        WARNING,
        None,
    ),
    _Rule(Condition.AVAILABLE, _took(Reason.NODE_LOST), WARNING, None),
    _Rule(Condition.AVAILABLE, _took(Reason.BIND_FAILED), WARNING, None),
    _Rule(Condition.READY, _took(Reason.CONFIG_MISSING), WARNING, None),
    _Rule(Condition.READY, _took(Reason.LWS_NOT_INSTALLED), WARNING, None),
    _Rule(Condition.READY, _took(Reason.APPLY_FAILED), WARNING, None),
    _Rule(Condition.PLUGIN_VERIFIED, _took(Reason.IMAGE_PULL_FAILED), WARNING, None),
    _Rule(Condition.PLUGIN_VERIFIED, _took(Reason.PREFLIGHT_UNSCHEDULABLE), WARNING, None),
    _Rule(Condition.PLUGIN_VERIFIED, _took(Reason.VERIFIED), NORMAL, None),
    _Rule(Condition.PLUGIN_VERIFIED, _took(Reason.VERIFIED_WITH_WARNINGS), WARNING, None),
    _Rule(Condition.PLUGIN_VERIFIED, _took(Reason.UNJUDGED), WARNING, None),
    _Rule(Condition.PLANNED, _became(TRUE), NORMAL, None),
    _Rule(Condition.GPUS_RESERVED, _took(Reason.WAITING_FOR_GPUS), WARNING, None),
    _Rule(Condition.GPUS_RESERVED, _became(TRUE), NORMAL, None),
    _Rule(Condition.PROGRESSING, _took(Reason.ROLLING_OUT), NORMAL, None),
    _Rule(
        Condition.PROGRESSING,
        lambda old, new: old.reason == Reason.ROLLING_OUT and new.reason == Reason.ROLLOUT_COMPLETE,
        NORMAL,
        None,
    ),
    _Rule(Condition.READY, _became(TRUE), NORMAL, None),
    _Rule(Condition.READY, _left(TRUE), WARNING, None),
)


def events_between(previous: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[EventNote]:
    """The turning points between two statuses, in the order in which they are told; one for each reason."""
    before, after = _told(previous), _told(new)
    notes: dict[str, EventNote] = {}
    for rule in _RULES:
        old, now = before.get(rule.condition, ABSENT), after.get(rule.condition, ABSENT)
        if now is not ABSENT and rule.turn(old, now):
            reason = str(rule.reason or now.reason)
            notes.setdefault(reason, EventNote(rule.type, reason, now.message))
    return list(notes.values())


def _told(status: Mapping[str, Any] | None) -> dict[str, Told]:
    return {
        name: Told(*(str(each.get(part, "")) for part in ("status", "reason", "message")))
        for name, each in previous_conditions(status).items()
    }
