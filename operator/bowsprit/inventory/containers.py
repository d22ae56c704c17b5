"""What a pod's containers say: how one has ended, or why one cannot start.

An engine's pod restarts in place for ever, so its phase stays Running or Pending whatever happens to it; what
happened stands with its containers alone.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

from bowsprit.facts.report import parse_report
from bowsprit.inventory.wire import mapping, mappings, text

_ON_ITS_WAY = ("", "PodInitializing", "ContainerCreating")
_PULLING = ("ErrImagePull", "ImagePullBackOff")
"""The kubelet says the error itself and that it waits in turn: one word for both."""
_OUT_OF_MEMORY = "OOMKilled"
_MESSAGE_MAX = 256
_SIGNALS_FROM = 128
"""Shells and container runtimes add it to the number of the signal that ended a process."""


class Trouble(NamedTuple):
    reason: str
    """The kubelet's own word: OOMKilled, Error, Completed, ImagePullBackOff, …"""
    message: str
    """User text, without what to do."""
    ended: bool = False
    """A container that was to go on has ended, or has failed; else one cannot start."""
    times: int = 0
    """How often that container has ended."""


def trouble_of(status: Mapping[str, Any]) -> Trouble | None:
    """Of a pod's status; also when the container has been started again since. Never raises.

    The message has at most 256 characters.
    """
    setting_up = [_set_up(each) for each in mappings(status.get("initContainerStatuses"))]
    serving = [_ended(each) or _held(each) for each in mappings(status.get("containerStatuses"))]
    found = next((trouble for trouble in (*setting_up, *serving) if trouble is not None), None)
    return found and found._replace(message=found.message[:_MESSAGE_MAX])


def _set_up(container: Mapping[str, Any]) -> Trouble | None:
    """An init container that has ended well is as it should be."""
    ended = _ended(container)
    failed = mapping(mapping(container.get("state")).get("terminated")).get("exitCode") != 0
    return (ended if failed else None) or _held(container)


def _ended(container: Mapping[str, Any]) -> Trouble | None:
    now, before = mapping(container.get("state")), mapping(container.get("lastState"))
    end = mapping(now.get("terminated")) or mapping(before.get("terminated"))
    return _told(text(container.get("name")), end)._replace(times=_times(container)) if end else None


def _times(container: Mapping[str, Any]) -> int:
    """One that has been started again has ended as often as that; else once more."""
    starts_again = container.get("restartCount")
    again = starts_again if isinstance(starts_again, int) else 0
    return again if mapping(container.get("state")).get("running") else again + 1


def _told(name: str, end: Mapping[str, Any]) -> Trouble:
    reason, code = text(end.get("reason")) or "Error", end.get("exitCode")
    said = end.get("message")
    report = parse_report(said) if isinstance(said, str) and said else None
    if report is not None and report.faults:
        fault = report.faults[0]
        return Trouble(fault.reason, f"container {name}: {fault.message}", ended=True)
    if reason == _OUT_OF_MEMORY:
        how = "reached its memory limit and was killed"
    elif isinstance(code, int) and (killer := _signal(code - _SIGNALS_FROM)):
        how = f"was ended by {killer} (exit code {code})"
    else:
        how = f"ended with exit code {code}"
    return Trouble(reason, f"container {name} {how}", ended=True)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


def _held(container: Mapping[str, Any]) -> Trouble | None:
    waiting = mapping(mapping(container.get("state")).get("waiting"))
    reason = text(waiting.get("reason"))
    if reason in _ON_ITS_WAY:
        return None
    message = waiting.get("message")
    words = message if isinstance(message, str) else ""
    if reason in _PULLING:
        reason, words = _PULLING[-1], words.rpartition(f"{_PULLING[0]}: ")[2]
    told = f": {words}" if words else ""
    return Trouble(reason, f"container {text(container.get('name'))} cannot start{told}")
