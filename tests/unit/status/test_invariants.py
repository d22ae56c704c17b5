"""What holds of every status, whatever was observed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bowsprit.api.reasons import Condition, Reason
from bowsprit.api.status import ModelDeploymentStatus
from bowsprit.status.compute import compute
from bowsprit.status.events import events_between
from bowsprit.status.observed import Observed
from tests.unit.status.preflight_pods import OF_A_NEWER_RUNTIME
from tests.unit.status.strategies import healthy, observations

EARLY, LATE = "2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z"
anything = observations | healthy


def by_type(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["type"]: each for each in status["conditions"]}


@given(anything)
def test_computing_it_again_later_changes_nothing_and_tells_nothing(observed: Observed) -> None:
    status = compute(observed, None, EARLY)
    assert compute(observed, status, LATE) == status
    assert events_between(status, status) == []


@given(anything)
def test_a_ready_model_is_not_stalled_and_has_its_replicas(observed: Observed) -> None:
    status = compute(observed, None, EARLY)
    conditions = by_type(status)
    if conditions["Ready"]["status"] == "True":
        assert conditions["Stalled"]["status"] == "False"
        assert status["readyReplicas"] >= observed.wanted
        assert not observed.suspended
        assert status["phase"] == "Ready"


@given(anything)
def test_it_is_never_stalled_and_reconciling_at_once(observed: Observed) -> None:
    conditions = by_type(compute(observed, None, EARLY))
    assert "True" not in (conditions["Stalled"]["status"], conditions["Reconciling"]["status"]) or (
        conditions["Stalled"]["status"] != conditions["Reconciling"]["status"]
    )


@given(anything)
def test_every_condition_is_there_well_formed_and_of_this_generation(observed: Observed) -> None:
    status = compute(observed, None, EARLY)
    assert [each["type"] for each in status["conditions"]] == [str(each) for each in Condition]
    assert status["observedGeneration"] == observed.generation
    for each in status["conditions"]:
        assert each["status"] in {"True", "False", "Unknown"}
        assert each["reason"] in {*Reason, OF_A_NEWER_RUNTIME}
        assert 0 < len(each["message"]) <= 1024
        assert each["observedGeneration"] == observed.generation
        assert each["lastTransitionTime"] == EARLY


@given(anything, anything)
def test_the_transition_time_moves_exactly_when_a_status_flips(first: Observed, second: Observed) -> None:
    before = compute(first, None, EARLY)
    old, new = by_type(before), by_type(compute(second, before, LATE))
    for name, each in new.items():
        flipped = each["status"] != old[name]["status"]
        assert each["lastTransitionTime"] == (LATE if flipped else EARLY)


@given(anything)
def test_the_api_server_would_take_it(observed: Observed) -> None:
    ModelDeploymentStatus.model_validate(compute(observed, None, EARLY))


@given(anything)
def test_waiting_for_gpus_alone_is_never_stalled(observed: Observed) -> None:
    conditions = by_type(compute(observed, None, EARLY))
    if conditions["GPUsReserved"]["reason"] == Reason.WAITING_FOR_GPUS:
        assert conditions["Stalled"]["status"] == "False"


@given(
    anything,
    st.sampled_from([None, {}, {"conditions": 3}, {"conditions": [None, {"type": 1}]}, {"plan": []}]),
)
def test_a_damaged_previous_status_counts_as_none(observed: Observed, damaged: Any) -> None:
    assert compute(observed, damaged, EARLY) == compute(observed, None, EARLY)


@given(anything)
def test_the_order_in_which_writes_and_pods_were_refused_does_not_matter(observed: Observed) -> None:
    turned = replace(
        observed, apply_errors=observed.apply_errors[::-1], refused_pods=observed.refused_pods[::-1]
    )
    assert compute(turned, None, EARLY) == compute(observed, None, EARLY)
