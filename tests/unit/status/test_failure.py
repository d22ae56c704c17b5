"""When a revision that is being rolled out has failed, and what is kept of that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bowsprit.plan.result import ModelPlan
from bowsprit.status.compute import compute
from bowsprit.status.events import events_between
from bowsprit.status.observed import ApplyError, Observed
from tests.unit.status.examples import (
    FIRST,
    KEY,
    NO_IMAGE,
    OLD,
    OOM,
    PLANNED,
    REJECTED,
    SECOND,
    SHORT,
    UNTRUE,
    spec,
    unit,
)
from tests.unit.status.test_invariants import by_type

START, SOON, LATE = "2026-11-30T12:00:00Z", "2026-11-30T12:09:59Z", "2026-11-30T12:10:00Z"
LATER = "2026-11-30T18:00:00Z"
STARTING = unit(SECOND, ready=0)
TRIAL = replace(
    PLANNED, units=(OLD, STARTING), serving="old", fallback="old", deadline_seconds=600, generation=2
)
"""A new revision starts beside the old one."""
QUOTA = ApplyError("Deployment/llama-new", "exceeded quota: gpu.")


def starting(**changes: Any) -> Observed:
    return replace(TRIAL, units=(OLD, replace(STARTING, **changes)))


def course(*moments: tuple[Observed, str]) -> dict[str, Any]:
    """The revisions in the status after an observation at each of some times."""
    status: dict[str, Any] = {}
    for observed, time in moments:
        status = compute(observed, status, time)
    return dict(status["revisions"])


FAILURES = {
    "the deadline has passed": (
        TRIAL,
        ("ProgressDeadlineExceeded", "0 of 2 replicas ready, and no other one within 600 s."),
    ),
    "an image is not there until the deadline": (
        starting(failure=NO_IMAGE),
        (
            "ProgressDeadlineExceeded",
            "ImagePullBackOff: pod llama-0-1: container engine cannot start: not found.",
        ),
    ),
    "a quota refuses its pods until the deadline": (
        replace(TRIAL, units=(OLD,), refused_pods=(QUOTA,)),
        ("ProgressDeadlineExceeded", "The API server refuses Deployment/llama-new: exceeded quota: gpu."),
    ),
    "the API server refuses its workload until the deadline": (
        replace(TRIAL, units=(OLD,), apply_errors=(replace(QUOTA, message="no such field", invalid=True),)),
        ("ProgressDeadlineExceeded", "no such field"),
    ),
    "no old replica stands any more": (
        replace(TRIAL, units=(STARTING,)),
        ("ProgressDeadlineExceeded", "The engine was still starting."),
    ),
    "it is the first revision of the model": (
        replace(TRIAL, units=(STARTING,), serving=None, fallback=None),
        ("ProgressDeadlineExceeded", "within 600 s"),
    ),
}
"""Moments that last until the deadline."""


@pytest.mark.parametrize(("observed", "told"), FAILURES.values(), ids=FAILURES)
def test_it_has_failed_when_the_deadline_has_passed_and_not_before(
    observed: Observed, told: tuple[str, str]
) -> None:
    assert course((observed, START))["progress"] == {"ready": 0, "since": START}
    assert "failed" not in course((observed, START), (observed, SOON))
    revisions = course((observed, START), (observed, SOON), (observed, LATE))
    failed = revisions["failed"]
    assert (failed["revision"], failed["reason"], failed["time"]) == ("new", told[0], LATE)
    assert told[1] in failed["message"]
    assert "progress" not in revisions


def test_of_several_refusals_the_same_one_is_told_in_whatever_order_they_came() -> None:
    errors = (
        QUOTA,
        replace(QUOTA, message="no such field", invalid=True),
        replace(QUOTA, target="Service/x"),
    )
    told = [
        course((observed, START), (observed, LATE))["failed"]["message"]
        for order in (errors, errors[::-1])
        if (observed := replace(TRIAL, units=(OLD,), apply_errors=order))
    ]
    assert told[0] == told[1]
    assert "no such field" in told[0]


AT_ONCE = {
    "a replica ended for the fifth time": (
        starting(failure=replace(OOM, times=5)),
        ("CrashLooping", "Replica 1 has ended 5 times before the revision served, lastly: OOMKilled: pod"),
    ),
    "it is the first revision, and ends for the fifth time": (
        replace(TRIAL, units=(replace(STARTING, failure=replace(OOM, times=5)),), serving=None),
        ("CrashLooping", "OOMKilled"),
    ),
    "a group that waits to be started again ended for the fifth time": (
        starting(pinned=0, bound=0, failure=replace(OOM, times=5, pause_seconds=80)),
        ("CrashLooping", "5 times"),
    ),
    "the self-check was not passed": (
        starting(failure=UNTRUE),
        (
            "VerifyFailed",
            "Replica 1 did not answer spec.rollout.verify as that asks: pod llama-1-0: container",
        ),
    ),
    "the self-check was not passed by a replica that is being replaced": (
        starting(failure=UNTRUE, leaving=True),
        ("VerifyFailed", "without 'Paris'"),
    ),
}


@pytest.mark.parametrize(("observed", "told"), AT_ONCE.values(), ids=AT_ONCE)
def test_it_has_failed_at_once_when(observed: Observed, told: tuple[str, str]) -> None:
    failed = course((observed, START))["failed"]
    assert (failed["reason"], failed["time"]) == (told[0], START)
    assert told[1] in failed["message"]


HELD_BACK = replace(TRIAL, units=(OLD, replace(STARTING, pinned=0, bound=0)), held_back=True)
WAITING = {
    "it waits for GPUs": replace(
        TRIAL, units=(OLD,), plan=ModelPlan(KEY, wanted=2, refusal=SHORT, position=1)
    ),
    "one is ready and the other waits for GPUs": replace(
        TRIAL,
        units=(OLD, OLD, unit(FIRST)),
        plan=ModelPlan(KEY, wanted=2, replicas=(FIRST,), refusal=SHORT, position=1),
    ),
    "it is suspended": replace(TRIAL, spec=spec(suspend=True), units=(), plan=ModelPlan(KEY, wanted=0)),
    "its preflight runs": replace(TRIAL, target=None, stand_in="old", units=(OLD,)),
    "the spec cannot be read": replace(TRIAL, spec=None, target=None, faults=("spec.replicas: …",)),
    "another one stands in for it": replace(TRIAL, stand_in="old"),
    "requests go to it": replace(TRIAL, serving="new"),
}
NOT_BEGUN = {
    "its pods are not there yet": replace(TRIAL, units=(OLD,)),
    "what its pods are to take is not free yet": HELD_BACK,
    "somebody refuses that an old workload goes": replace(HELD_BACK, apply_errors=(QUOTA,)),
    "the workload of an older revision is refused": replace(
        HELD_BACK, apply_errors=(replace(QUOTA, invalid=True, revision="old"),)
    ),
}


@pytest.mark.parametrize("observed", [*WAITING.values(), *NOT_BEGUN.values()], ids=[*WAITING, *NOT_BEGUN])
def test_no_clock_begins_while(observed: Observed) -> None:
    assert "progress" not in course((observed, START))
    assert "failed" not in course((observed, START), (observed, LATE))


@pytest.mark.parametrize("observed", WAITING.values(), ids=WAITING)
def test_the_clock_begins_anew_after(observed: Observed) -> None:
    assert "progress" not in course((TRIAL, START), (observed, SOON))
    assert course((TRIAL, START), (observed, SOON), (TRIAL, LATE))["progress"]["since"] == LATE


GOING_ON = {
    "nothing has changed": TRIAL,
    "an engine that ended is started again": starting(failure=replace(OOM, times=4)),
    "a group is being replaced": starting(ready=0, leaving=True, failure=OOM),
    "a group waits for the end of its pause": starting(pinned=0, bound=0, failure=OOM),
    "a pod that its node refused goes elsewhere": starting(failure=REJECTED, leaving=True),
    "another one took its GPUs in a pause": HELD_BACK,
}


@pytest.mark.parametrize("observed", GOING_ON.values(), ids=GOING_ON)
def test_the_clock_goes_on_while(observed: Observed) -> None:
    assert course((TRIAL, START), (observed, SOON))["progress"]["since"] == START
    assert "failed" in course((TRIAL, START), (observed, SOON), (observed, LATE))


def test_each_further_replica_that_is_ready_is_progress_and_one_that_comes_back_is_none() -> None:
    old = replace(OLD, replica=SECOND)
    one = replace(TRIAL, units=(OLD, old, unit(FIRST), STARTING))
    assert course((TRIAL, START), (one, SOON))["progress"] == {"ready": 1, "since": SOON}
    assert course((one, START), (TRIAL, SOON), (one, SOON))["progress"] == {"ready": 1, "since": START}


def test_a_revision_that_another_edit_replaces_leaves_no_clock_to_the_next() -> None:
    other = replace(TRIAL, target="newer", units=(OLD, replace(STARTING, revision="newer")))
    assert course((TRIAL, START), (other, SOON))["progress"]["since"] == SOON


FAILED = replace(TRIAL, units=(OLD,), stand_in="old", plan=ModelPlan(KEY, wanted=1, replicas=(FIRST,)))
"""As it is after the deadline: the old revision stands in."""
KEPT = {
    "the old one serves": FAILED,
    "the old one starts again": replace(FAILED, units=(replace(OLD, ready=0),)),
    "the spec asks for its preflight anew": replace(FAILED, target=None),
    "the spec cannot be read": replace(FAILED, target=None, spec=None, faults=("spec.replicas: …",)),
    "it is suspended": replace(FAILED, spec=spec(suspend=True), units=()),
    "it is tried on, as the spec wants": replace(TRIAL, fallback=None),
    "it is scaled": replace(FAILED, spec=spec(replicas=3)),
}
DROPPED = {
    "the spec asks for another": replace(FAILED, target="newer", stand_in=None),
    "the spec asks for the old one again": replace(FAILED, target="old", stand_in=None, fallback=None),
    "requests go to it after all": replace(TRIAL, units=(unit(FIRST), unit(SECOND)), serving="new"),
}
FAILING = ((TRIAL, START), (TRIAL, LATE))


@pytest.mark.parametrize("observed", KEPT.values(), ids=KEPT)
def test_a_failure_is_kept_while(observed: Observed) -> None:
    found = course(*FAILING)["failed"]
    assert course(*FAILING, (observed, LATER))["failed"] == found


@pytest.mark.parametrize("observed", DROPPED.values(), ids=DROPPED)
def test_a_failure_is_dropped_when(observed: Observed) -> None:
    assert "failed" not in course(*FAILING, (observed, LATER))


def test_coming_back_to_it_later_tries_it_anew() -> None:
    back = DROPPED["the spec asks for the old one again"]
    assert "failed" not in course(*FAILING, (back, LATER), (TRIAL, LATER))


def test_the_condition_says_what_failed_and_what_became_of_it() -> None:
    told = by_type(compute(TRIAL, compute(TRIAL, {}, START), LATE))
    assert told["Progressing"]["status"] == "False"
    assert told["Stalled"]["status"] == "True"
    assert told["Reconciling"]["status"] == "False"
    assert told["Available"]["status"] == "True"
    for name in ("Progressing", "Stalled", "Ready"):
        assert told[name]["reason"] == "ProgressDeadlineExceeded"
        assert "Revision new has failed: 0 of 2 replicas ready" in told[name]["message"]
        assert "Revision old, which served before, is restored." in told[name]["message"]


WHAT_BECOMES = {
    "nothing has served before": (replace(TRIAL, serving=None, fallback=None), "No revision has served"),
    "the spec wants it so": (
        replace(TRIAL, fallback=None, spec=spec(rollout={"rollbackOnFailure": False})),
        "rollbackOnFailure is false",
    ),
    "the old one is gone": (replace(TRIAL, fallback=None), "Revision old, which served before, is not kept"),
}


@pytest.mark.parametrize(("observed", "words"), WHAT_BECOMES.values(), ids=WHAT_BECOMES)
def test_it_is_tried_on_when(observed: Observed, words: str) -> None:
    told = by_type(compute(observed, compute(observed, {}, START), LATE))
    assert words in told["Stalled"]["message"]
    assert told["Stalled"]["message"].count("it is tried on") == 1


def test_the_turning_point_is_told_once() -> None:
    before = compute(TRIAL, {}, START)
    failed = compute(TRIAL, before, LATE)
    (note,) = [each for each in events_between(before, failed) if each.type == "Warning"]
    assert note.reason == "ProgressDeadlineExceeded"
    assert "is restored" in note.message
    assert not [
        each for each in events_between(failed, compute(FAILED, failed, LATER)) if each.type == "Warning"
    ]


@pytest.mark.parametrize(
    "damaged",
    [
        {"revisions": 1},
        {"revisions": {"target": "new", "progress": 1, "failed": "x"}},
        {"revisions": {"target": "new", "progress": {"ready": 0, "since": "yesterday"}, "failed": {}}},
        {"revisions": {"target": "new", "progress": {"ready": 0, "since": "2026-11-30T12:00:00"}}},
        {"revisions": {"target": "new", "progress": {"ready": "0", "since": START}}},
        {
            "revisions": {
                "target": "new",
                "failed": {"revision": "new", "reason": 3, "message": "", "time": ""},
            }
        },
    ],
)
def test_what_somebody_has_spoilt_in_the_status_counts_as_never_written(damaged: Any) -> None:
    assert compute(TRIAL, damaged, LATE)["revisions"] == course((TRIAL, LATE))
