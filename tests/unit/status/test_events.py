"""Events tell the turning points of a life, each once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.plan.result import ModelPlan
from bowsprit.status.compute import compute
from bowsprit.status.events import events_between
from bowsprit.status.observed import Observed
from tests.unit.status.examples import (
    FIRST,
    KEY,
    LIFE,
    OLD,
    PLANNED,
    READY,
    SECOND,
    SHORT,
    spec,
    unit,
)

NOW = "2026-11-30T12:00:00Z"
LOST = LIFE["a node is lost"]
ROLLING = replace(PLANNED, units=(OLD, unit(SECOND, ready=0)), serving="old")


def told(*moments: Observed) -> list[list[str]]:
    """The events of each step through these moments, as `Type Reason`."""
    status = None
    steps = []
    for moment in moments:
        new = compute(moment, status, NOW)
        steps.append([f"{note.type} {note.reason}" for note in events_between(status, new)])
        status = new
    return steps


def test_from_apply_to_ready() -> None:
    names = ("just created", "planned, no pod yet", "placed, engines starting", "ready")
    assert told(*(LIFE[name] for name in names)) == [
        [],
        ["Normal Planned"],
        ["Normal Reserved"],
        ["Normal ReplicasReady"],
    ]


@pytest.mark.parametrize(
    ("moments", "events"),
    [
        pytest.param(
            [LIFE["just created"], LIFE["it waits for GPUs, third in the queue"]],
            ["Warning WaitingForGPUs"],
            id="it starts to wait",
        ),
        pytest.param(
            [
                LIFE["it waits for GPUs, third in the queue"],
                replace(PLANNED, plan=ModelPlan(KEY, 2, refusal=SHORT, position=2)),
            ],
            [],
            id="it moves up in the queue",
        ),
        pytest.param(
            [LIFE["it waits for GPUs, third in the queue"], PLANNED], ["Normal Planned"], id="GPUs come free"
        ),
        pytest.param([READY, LOST], ["Warning NodeLost"], id="a node is lost"),
        pytest.param([LOST, LOST], [], id="it is still lost on the next pass"),
        pytest.param(
            [PLANNED, LIFE["the kubelet rejects a pod"]], ["Warning BindFailed"], id="a pod is rejected"
        ),
        pytest.param(
            [READY, LIFE["the rejected group goes and finds no GPUs elsewhere"]],
            ["Warning BindFailed", "Warning WaitingForGPUs"],
            id="a pod is rejected and there is no other place",
        ),
        pytest.param(
            [READY, LIFE["one replica of two is ready"]],
            ["Warning ReplicasNotReady"],
            id="an engine goes down",
        ),
        pytest.param(
            [LIFE["one replica of two is ready"], READY], ["Normal ReplicasReady"], id="it comes back"
        ),
        pytest.param([READY, ROLLING], ["Normal RollingOut"], id="a rollout starts"),
        pytest.param(
            [ROLLING, READY],
            ["Normal Reserved", "Normal RolloutComplete", "Normal ReplicasReady"],
            id="a rollout ends",
        ),
        pytest.param([READY, LIFE["suspended"]], ["Normal Suspended"], id="it is suspended"),
        pytest.param(
            [LIFE["suspended"], replace(PLANNED, units=())],
            ["Normal Resumed", "Normal Planned"],
            id="it is resumed",
        ),
        pytest.param(
            [LIFE["just created"], LIFE["the layout is refused"]],
            ["Warning LayoutRefused"],
            id="it is refused",
        ),
        pytest.param(
            [LIFE["just created"], LIFE["the config is missing"]],
            ["Warning ModelConfigMissing"],
            id="its config is missing",
        ),
        pytest.param(
            [PLANNED, LIFE["LeaderWorkerSet is not installed"]],
            ["Warning LeaderWorkerSetNotInstalled"],
            id="LeaderWorkerSet is missing",
        ),
        pytest.param(
            [
                READY,
                replace(READY, spec=spec(replicas=1), plan=ModelPlan(KEY, 1, (FIRST,)), units=(unit(FIRST),)),
            ],
            [],
            id="it is scaled down",
        ),
    ],
)
def test_one_step(moments: list[Observed], events: list[str]) -> None:
    assert told(*moments)[-1] == events


def test_the_message_of_an_event_is_the_conditions_own() -> None:
    before, after = compute(READY, None, NOW), compute(LIFE["suspended"], None, NOW)
    (note,) = events_between(before, after)
    assert note.message == after["conditions"][0]["message"]
