"""Replica plans survive the way into status and back, and damage costs only the entry that it hit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.plan.result import ReplicaPlan
from bowsprit.status.compute import compute
from bowsprit.status.replicas import RecordedReplica, replica_to_status, replicas_from_status
from tests.unit.status.examples import FIRST, LIFE, READY, SECOND
from tests.unit.status.strategies import replicas

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(replicas(), max_size=4))
def test_the_round_trip_is_exact(plans: list[ReplicaPlan]) -> None:
    written = {"plan": {"replicas": [replica_to_status(replica, "r1") for replica in plans]}}
    read = replicas_from_status(json.loads(json.dumps(written)))
    assert read == tuple(RecordedReplica("r1", replica) for replica in plans)


@given(json_values)
def test_no_damage_raises(value: Any) -> None:
    for status in (value, {"plan": value}, {"plan": {"replicas": value}}, {"plan": {"replicas": [value]}}):
        if status is None or isinstance(status, dict):
            replicas_from_status(status)


@given(st.sampled_from(sorted(replica_to_status(FIRST, "r1"))), json_values)
def test_a_damaged_field_costs_one_entry_at_most(field: str, value: Any) -> None:
    damaged = {**replica_to_status(FIRST, "r1"), field: value}
    read = replicas_from_status({"plan": {"replicas": [damaged, replica_to_status(SECOND, "r1")]}})
    assert read[-1] == RecordedReplica("r1", SECOND)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"index": -1}, id="a negative index"),
        pytest.param({"index": True}, id="a boolean for a number"),
        pytest.param({"tensor": 0}, id="tensor of zero"),
        pytest.param({"pipeline": 3}, id="more stages than the pods hold"),
        pytest.param({"pods": []}, id="no pods"),
        pytest.param(
            {"pods": [{"node": "", "gpus": 1}, {"node": "b", "gpus": 1}]}, id="a node without a name"
        ),
        pytest.param({"pods": [{"node": "a", "gpus": 2}]}, id="pods of another size"),
        pytest.param({"revision": None}, id="no revision"),
        pytest.param({"layerPartition": ["40", 40]}, id="layers as text"),
        pytest.param({"stages": [{"layers": 1}]}, id="a stage without its GiB"),
    ],
)
def test_an_entry_is_dropped_for(change: dict[str, Any]) -> None:
    assert replicas_from_status({"plan": {"replicas": [{**replica_to_status(FIRST, "r1"), **change}]}}) == ()


def test_what_the_plan_gave_up_is_not_promised_again() -> None:
    status = compute(LIFE["scaled down, one replica stopping"], None, "2026-11-30T12:00:00Z")
    assert replicas_from_status(status) == (RecordedReplica("new", FIRST),)


def test_older_replicas_that_stand_are_kept_beside_the_promised() -> None:
    status = compute(LIFE["a new revision starts beside the old"], None, "2026-11-30T12:00:00Z")
    assert replicas_from_status(status) == (
        RecordedReplica("new", FIRST),
        RecordedReplica("new", SECOND),
        RecordedReplica("old", FIRST),
    )


def test_before_the_first_plan_what_stands_is_kept() -> None:
    status = compute(replace(READY, plan=None), None, "2026-11-30T12:00:00Z")
    assert replicas_from_status(status) == (RecordedReplica("new", FIRST), RecordedReplica("new", SECOND))
