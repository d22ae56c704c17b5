"""Why pods are missing: what the API server said to the controllers that create them.

A quota, a LimitRange or an admission policy refuses pods, and not the workload that they belong to. The
workload's controllers then say so in Events of the reason FailedCreate, on a ReplicaSet, StatefulSet or Job,
where nobody looks. An Event counts while pods are missing and only if it is younger than our last change of
the workload, so an old one explains nothing that is new.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bowsprit.controller.children import WORKLOADS, Child
from bowsprit.controller.frame import Frame
from bowsprit.status.observed import ApplyError

FAILED_CREATE = "reason=FailedCreate"
"""Field selector of the Events that tell it."""

_ABOUT_A_POD = re.compile(r'.*?\bpods "[^"]*" (?:is|are) ', re.DOTALL)
"""What stands before the API server's words; the pod's name changes with every try."""


@dataclass(frozen=True, slots=True)
class Complaint:
    namespace: str
    about: str
    """Name of the ReplicaSet or StatefulSet."""
    message: str
    at: str
    """RFC 3339 time at which it was last said."""

    @property
    def workloads(self) -> tuple[str, str]:
        """What the workload may be called: a LeaderWorkerSet's own StatefulSet has its name, the others add a
        word."""
        return self.about, self.about.rpartition("-")[0]


def project(event: Mapping[str, Any]) -> Complaint | None:
    """The complaint that an Event is; None for one that cannot be read."""
    about = event.get("involvedObject") or {}
    name, message = about.get("name"), event.get("message")
    if about.get("kind") not in ("ReplicaSet", "StatefulSet", "Job") or not name or not message:
        return None
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    said = next((time for time in times if time), event["metadata"].get("creationTimestamp", ""))
    words = _ABOUT_A_POD.sub("", str(message), count=1)
    return Complaint(event["metadata"]["namespace"], str(name), words, str(said))


def refusals(frame: Frame, complaint_about: Callable[[Child], Complaint | None]) -> tuple[ApplyError, ...]:
    """What keeps the controllers from creating pods of this model: of what is planned, and of its proof."""
    return tuple(_refusals(frame, complaint_about))


def _refusals(frame: Frame, complaint_about: Callable[[Child], Complaint | None]) -> Iterator[ApplyError]:
    for child in frame.children:
        complaint = complaint_about(child) if _lacks_pods(frame, child) else None
        if complaint is not None and complaint.at >= child.applied:
            yield ApplyError(f"{child.kind}/{child.name}", complaint.message)


def _lacks_pods(frame: Frame, child: Child) -> bool:
    if child.kind == "Job":
        return not any(attempt.job == child.uid for attempt in frame.attempts)
    if child.kind not in WORKLOADS or child.layout is None:
        return False
    if frame.target is not None and child.revision != frame.target.hash:
        return False
    there = sum(len(group.pods) for group in frame.groups if group.workload.name == child.name)
    return there < child.replicas * child.layout.pods
