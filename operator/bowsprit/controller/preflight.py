"""The proof that comes before planning: which Job is to run, which report is kept, and what goes.

Pure, and only from what is there. While there is no report of the present spec its Job runs; what its pod
reported becomes a ConfigMap; then the Job goes. So a killed operator finds each of these states again. A Job
of an earlier spec goes at once; reports stay as long as a revision that they are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bowsprit.api.reasons import Reason
from bowsprit.controller.children import PREFLIGHT_KINDS, Child
from bowsprit.controller.frame import Frame
from bowsprit.inventory.nodes import NodeView
from bowsprit.render.preflight import preflight_config_map, preflight_job, preflight_key, untolerated
from bowsprit.render.revision import Revision, asked_before
from bowsprit.status.attempt import Attempt, Stage
from bowsprit.status.preflight import Proof

AILMENTS = "node.kubernetes.io/"
"""How taints begin that tell what ails a node: nobody is to tolerate them."""


def proof_of(frame: Frame, nodes: Iterable[NodeView] = ()) -> Proof | None:
    """How far the proof of the present spec is; None when it asks for none."""
    if not frame.declared.preflight:
        return None
    if frame.knowledge.kept is not None:
        return Proof(report=frame.knowledge.kept.report)
    job = _job(frame)
    attempt = _newest(frame, job)
    failed = attempt is not None and attempt.stage is Stage.FAILED
    homeless = attempt is not None and attempt.reason == Reason.PREFLIGHT_UNSCHEDULABLE
    return Proof(
        attempt=attempt,
        given_up=job.name if job is not None and job.ended and failed else "",
        kept_away=_kept_away(frame, nodes) if homeless else (),
    )


def _kept_away(frame: Frame, nodes: Iterable[NodeView]) -> tuple[str, ...]:
    assert frame.declared.deployment is not None, "what is to be proven can be read"
    taints = {taint for node in nodes for taint in node.taints if not taint.key.startswith(AILMENTS)}
    return tuple(sorted(map(str, untolerated(frame.declared.deployment.spec, taints))))


def preflight_manifests(frame: Frame) -> Iterator[dict[str, Any]]:
    """The Job while there is none and no report; the ConfigMap as soon as there is one. Neither is ever
    changed once it is there."""
    declared = frame.declared
    if declared.deployment is None or not _is_wanted(frame):
        return
    job = _job(frame)
    attempt = _newest(frame, job)
    if attempt is not None and attempt.stage is Stage.REPORTED:
        ran = {container: image_id for container, (_, image_id) in attempt.images}
        yield preflight_config_map(declared.owner, declared.preflight, attempt.report, ran)
    elif job is None:
        spec = declared.deployment.spec
        before = asked_before(spec, frame.key.name, _stored(frame))
        # What is proven is what would serve: with the defaults that were given to these words before.
        spec = before[-1].spec if before else spec
        yield preflight_job(declared.owner, declared.preflight, spec, frame.knowledge.runtime_image)


def preflight_leftovers(frame: Frame) -> Iterator[Child]:
    """Jobs that have done their work, or that nobody waits for, or whose next tries need a new one; reports
    of what is no revision any more."""
    if frame.declared.deployment is None:
        return
    job = _job(frame)
    for child in frame.children:
        if child.kind == "Job" and (child is not job or not _is_wanted(frame) or _is_spent(frame, child)):
            yield child
    yield from _old_reports(frame)
    # Of an earlier object of the name: they would keep it from those of this one.
    yield from (child for child in frame.strays if child.kind in PREFLIGHT_KINDS and not child.terminating)


def _is_wanted(frame: Frame) -> bool:
    return bool(frame.declared.preflight) and frame.knowledge.kept is None and not frame.suspended


def _is_spent(frame: Frame, job: Child) -> bool:
    """It has ended, and its pod is gone unread, or said that the network failed: another one tries again."""
    attempt = _newest(frame, job)
    return bool(job.ended) and (attempt is None or attempt.stage is Stage.OFFLINE)


def _job(frame: Frame) -> Child | None:
    """Of the present spec."""
    jobs = (child for child in frame.children if child.kind == "Job")
    return next((job for job in jobs if job.preflight == frame.declared.preflight), None)


def _newest(frame: Frame, job: Child | None) -> Attempt | None:
    if job is None:
        return None
    mine = [attempt for attempt in frame.attempts if attempt.job == job.uid]
    return max(mine, key=lambda attempt: (attempt.created, attempt.name), default=None)


def _old_reports(frame: Frame) -> Iterator[Child]:
    reports = [child for child in frame.children if child.kind == "ConfigMap"]
    if all(child.preflight == frame.declared.preflight and child.kept is not None for child in reports):
        return
    known = {preflight_key(revision.said, frame.key.namespace) for revision in _stored(frame)}
    known.add(frame.declared.preflight)
    yield from (child for child in reports if child.preflight not in known or child.kept is None)


def _stored(frame: Frame) -> list[Revision]:
    return [child.stored for child in frame.children if child.stored is not None]
