"""What one pod of a preflight Job says: how far it is, what holds it up, how it ended.

Read from the pod alone, so that a killed operator finds it again. Whatever a container left behind may have
been written by foreign code: it is taken for a report only when it can be read as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from bowsprit.api.names import PREFLIGHT_LABEL, PREFLIGHT_OF_LABEL
from bowsprit.api.reasons import Reason
from bowsprit.facts.report import parse_report
from bowsprit.status.text import cut

_NOTHING_SAID = ("", "PodInitializing", "ContainerCreating")
_IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
_PULL_ERROR = "ErrImagePull: "
_LAST_LINES = 400
"""Characters of a container's log that a message repeats."""


class Stage(StrEnum):
    UNDER_WAY = "UnderWay"
    HELD = "Held"
    """It cannot start: no node, no image, a Secret that is missing. It goes on by itself when that comes."""
    REPORTED = "Reported"
    """It ended with a report that is a verdict."""
    OFFLINE = "Offline"
    """It ended because the network failed; the Job tries again."""
    FAILED = "Failed"
    """It ended without a report."""


@dataclass(frozen=True, slots=True)
class Attempt:
    namespace: str
    name: str
    uid: str
    model: str
    """Name of the ModelDeployment."""
    key: str
    """Hash of what is judged."""
    job: str
    """uid of the Job."""
    created: str
    """RFC 3339."""
    stage: Stage
    reason: str
    """A condition reason."""
    message: str
    """User text, without what to do."""
    report: str = ""
    """As the container told it; of REPORTED and OFFLINE."""
    images: tuple[tuple[str, tuple[str, str]], ...] = ()
    """(container, (image, imageID)) of those that have run."""


class _Container(NamedTuple):
    name: str
    image: str
    status: Mapping[str, Any]

    @property
    def waiting(self) -> Mapping[str, Any]:
        return (self.status.get("state") or {}).get("waiting") or {}

    @property
    def ended(self) -> Mapping[str, Any]:
        return (self.status.get("state") or {}).get("terminated") or {}


class _Said(NamedTuple):
    stage: Stage
    reason: str
    message: str
    report: str = ""


def attempt_of(pod: Mapping[str, Any]) -> Attempt | None:
    """None for a pod that is no preflight of ours."""
    meta = pod["metadata"]
    marks = meta.get("labels") or {}
    if not (marks.get(PREFLIGHT_LABEL) and marks.get(PREFLIGHT_OF_LABEL)):
        return None
    containers = list(_containers(pod))
    said = _said(pod, containers)
    owners = [each for each in meta.get("ownerReferences") or () if each.get("controller")]
    return Attempt(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        model=marks[PREFLIGHT_OF_LABEL],
        key=marks[PREFLIGHT_LABEL],
        job=owners[0]["uid"] if owners else "",
        created=meta.get("creationTimestamp") or "",
        stage=said.stage,
        reason=said.reason,
        message=said.message,
        report=said.report,
        images=tuple(
            (each.name, (each.image, each.status["imageID"]))
            for each in containers
            if each.status.get("imageID")
        ),
    )


def _containers(pod: Mapping[str, Any]) -> Iterator[_Container]:
    """In the order in which they run, with what the kubelet says of them."""
    spec, status = pod["spec"], pod.get("status") or {}
    for kind in ("initContainer", "container"):
        known = {each["name"]: each for each in status.get(f"{kind}Statuses") or ()}
        for each in spec.get(f"{kind}s") or ():
            yield _Container(each["name"], each.get("image") or "", known.get(each["name"], {}))


def _said(pod: Mapping[str, Any], containers: list[_Container]) -> _Said:
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return _reported(containers) or _failed(status, containers)
    under_way = _Said(Stage.UNDER_WAY, Reason.PREFLIGHT_RUNNING, "")
    return _unschedulable(status) or _held(containers) or under_way


def _reported(containers: list[_Container]) -> _Said | None:
    for container in containers:
        told = str(container.ended.get("message") or "")
        report = parse_report(told) if told else None
        if report is not None and report.waits_for_network:
            fault = report.faults[0]
            return _Said(Stage.OFFLINE, fault.reason, fault.message, told)
        if report is not None:
            return _Said(Stage.REPORTED, Reason.VERIFIED, "", told)
    return None


def _failed(status: Mapping[str, Any], containers: list[_Container]) -> _Said:
    held = _held(containers)
    if held is not None:
        return held._replace(stage=Stage.FAILED)
    failed = next((each for each in containers if each.ended.get("exitCode")), None)
    if status.get("reason") == "DeadlineExceeded":
        where = f" (in container {failed.name})" if failed else ""
        return _Said(Stage.FAILED, Reason.PREFLIGHT_TIMED_OUT, f"the pod reached its deadline{where}")
    if failed is None:
        words = ": ".join(str(status[part]) for part in ("reason", "message") if status.get(part))
        return _Said(Stage.FAILED, Reason.PREFLIGHT_CRASHED, f"the pod failed: {words or 'nothing was said'}")
    if failed.ended.get("reason") == "OOMKilled":
        message = f"container {failed.name} was killed when it reached its memory limit"
        return _Said(Stage.FAILED, Reason.PREFLIGHT_OUT_OF_MEMORY, message)
    return _Said(Stage.FAILED, *_crashed(failed))


def _crashed(failed: _Container) -> tuple[str, str]:
    last = cut(" ".join(str(failed.ended.get("message") or "").split()), _LAST_LINES)
    words = f": {last}" if last else ""
    if failed.name.startswith("plugin-"):
        return Reason.NO_WHEELS, f"nothing could be copied out of plugin image {failed.image}{words}"
    if failed.name == "model":
        return Reason.MODEL_NOT_FOUND, f"no model could be copied out of image {failed.image}{words}"
    code = failed.ended["exitCode"]
    return Reason.PREFLIGHT_CRASHED, f"container {failed.name} ended with exit code {code}{words}"


def _unschedulable(status: Mapping[str, Any]) -> _Said | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            message = f"no node takes the preflight pod: {str(condition.get('message') or '').rstrip('. ')}"
            return _Said(Stage.HELD, Reason.PREFLIGHT_UNSCHEDULABLE, message)
    return None


def _held(containers: list[_Container]) -> _Said | None:
    for each in containers:
        reason = str(each.waiting.get("reason") or "")
        if reason in _NOTHING_SAID:
            continue
        # The kubelet says the error itself and "Back-off …" in turn: the same words for both.
        words = str(each.waiting.get("message") or "").rpartition(_PULL_ERROR)[2].rstrip(". ")
        if reason in _IMAGE_REASONS:
            message = f"image {each.image} cannot be pulled: {cut(words or reason, _LAST_LINES)}"
            return _Said(Stage.HELD, Reason.IMAGE_PULL_FAILED, message)
        message = f"container {each.name} cannot start: {reason}: {cut(words, _LAST_LINES)}"
        return _Said(Stage.HELD, Reason.PREFLIGHT_HELD, message)
    return None
