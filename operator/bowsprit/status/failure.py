"""Whether the revision that is being rolled out has failed: it is on trial until requests go to it.

Three things end a trial: no progress for too long, a replica that ends again and again, a self-check that was
not passed. The clock is a time in the status, so that no restart of the operator gives a revision more of it,
and every look at the cluster comes to the same verdict. It begins when a replica holds its GPUs (or the API
server refuses its pods: that is the revision's fault), begins anew with each further replica that is ready,
and is dropped while the revision waits for GPUs, is suspended or stood in for: none of that is its fault.

A failure is kept in the status as long as the spec asks for that revision. So it is not tried again, whoever
runs the operator; and tried anew when the spec comes back to it later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bowsprit.api.reasons import Reason
from bowsprit.status.findings import failed_itself, foremost, worst
from bowsprit.status.observed import ApplyError, Failed, Observed, Unit
from bowsprit.status.revisions import Progress, recorded_failure, recorded_progress, seconds_of
from bowsprit.status.text import cut, share

MOST_ENDS = 5
"""A replica that has ended so often will not live. With the pauses of the kubelet, which are those of
controller/backoff.py too, that takes two and a half minutes and five starts: longer than a Secret or a
registry that comes a moment later."""
MESSAGE_MAX = 768
"""Characters; room is left for what becomes of it."""


class Verdict(NamedTuple):
    reason: Reason
    message: str


def progress_of(observed: Observed, previous: Mapping[str, Any] | None, now: str) -> Progress | None:
    """The clock of the trial; None when none runs."""
    if not _on_trial(observed) or observed.ready >= _planned(observed):
        return None
    before = recorded_progress(previous, observed.target)
    if before is None:
        return Progress(observed.ready, now) if _has_begun(observed) else None
    return Progress(observed.ready, now) if observed.ready > before.ready else before


def failed_of(
    observed: Observed, progress: Progress | None, previous: Mapping[str, Any] | None, now: str
) -> Failed | None:
    """The failure of the target revision, found before or now."""
    before = recorded_failure(previous)
    if before is not None and observed.target in (None, before.revision):
        return None if observed.serving == before.revision else before
    if not _on_trial(observed) or observed.target is None:
        return None
    verdict = _refuted(observed) or _crash_looping(observed) or _late(observed, progress, now)
    return verdict and Failed(observed.target, verdict.reason, cut(verdict.message, MESSAGE_MAX), now)


def seconds_left(progress: Progress, deadline_seconds: float, now: str) -> float:
    """Until the deadline; not above 0 when it has passed."""
    return deadline_seconds - (seconds_of(now) - seconds_of(progress.since))


def _on_trial(observed: Observed) -> bool:
    asked = observed.spec is not None and not observed.suspended and observed.stand_in is None
    return asked and observed.target is not None and observed.serving != observed.target


def _planned(observed: Observed) -> int:
    """Replicas that have GPUs promised."""
    return len(observed.plan.replicas) if observed.plan is not None else 0


def _has_begun(observed: Observed) -> bool:
    refused = observed.refused_pods or any(error.invalid for error in _refusals(observed))
    return bool(refused) or any(unit.reserved and not unit.serves for unit in observed.current)


def _refuted(observed: Observed) -> Verdict | None:
    unit = worst(unit for unit in _failing(observed) if _reason(unit) == Reason.VERIFY_FAILED)
    if unit is None:
        return None
    asked = f"Replica {unit.replica.index} did not answer spec.rollout.verify as that asks"
    return Verdict(Reason.VERIFY_FAILED, f"{asked}: {_said(unit)}.")


def _crash_looping(observed: Observed) -> Verdict | None:
    unit = worst(unit for unit in _failing(observed) if _ends(unit) >= MOST_ENDS)
    if unit is None:
        return None
    ended = f"Replica {unit.replica.index} has ended {_ends(unit)} times before the revision served"
    return Verdict(Reason.CRASH_LOOPING, f"{ended}, lastly: {_reason(unit)}: {_said(unit)}.")


def _late(observed: Observed, progress: Progress | None, now: str) -> Verdict | None:
    if progress is None or seconds_left(progress, observed.deadline_seconds, now) > 0:
        return None
    ready = share(progress.ready, _planned(observed), "replica")
    late = f"{ready} ready, and no other one within {observed.deadline_seconds:g} s."
    return Verdict(Reason.PROGRESS_DEADLINE_EXCEEDED, f"{late} {_cause(observed)}")


def _cause(observed: Observed) -> str:
    unit = worst(_failing(observed))
    refusal = foremost(_refusals(observed))
    if unit is not None:
        return f"Replica {unit.replica.index}: {_reason(unit)}: {_said(unit)}."
    if refusal is not None:
        return f"The API server refuses {refusal.target}: {refusal.message.rstrip('. ')}."
    return "The engine was still starting."


def _refusals(observed: Observed) -> list[ApplyError]:
    """Those that are not of another revision: an old workload that is refused says nothing of this one."""
    mine = [error for error in observed.apply_errors if error.revision in ("", observed.target)]
    return [*observed.refused_pods, *mine]


def _failing(observed: Observed) -> list[Unit]:
    return [unit for unit in observed.attempts if failed_itself(unit)]


def _reason(unit: Unit) -> str:
    return unit.failure.reason if unit.failure is not None else ""


def _ends(unit: Unit) -> int:
    return unit.failure.times if unit.failure is not None and unit.failure.ended else 0


def _said(unit: Unit) -> str:
    return unit.failure.message.rstrip(". ") if unit.failure is not None else ""
