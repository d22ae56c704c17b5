"""What a pod's containers say of themselves, in words for a condition."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from bowsprit.inventory.containers import trouble_of
from tests.unit.inventory.test_pods import anything

RUNNING = {"running": {"startedAt": "2026-11-30T12:00:00Z"}}
REPORT = {
    "v": 1,
    "verdict": "Broken",
    "faults": [{"reason": "PluginHasNoWheels", "blame": "plugin", "message": "no wheel in /plugins"}],
}


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def engine(state: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "engine", "state": state, "lastState": before or {}}]}


def install(state: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    status = {"name": "install-plugins", "state": state, "lastState": before or {}}
    return {"initContainerStatuses": [status], **engine(waiting("PodInitializing"))}


SAID: dict[str, tuple[dict[str, Any], tuple[str, str, bool] | None]] = {
    "nothing yet": ({}, None),
    "it runs": (engine(RUNNING), None),
    "it is being set up": (install(RUNNING), None),
    "it is set up": (install(ended(0, "Completed")), None),
    "it is about to start": (engine(waiting("ContainerCreating")), None),
    "killed": (engine(ended(137)), ("Error", "container engine was ended by SIGKILL (exit code 137)", True)),
    "killed for its memory": (
        engine(ended(137, "OOMKilled")),
        ("OOMKilled", "container engine reached its memory limit and was killed", True),
    ),
    "ended as if all were well, which no engine's is": (
        engine(ended(0, "Completed")),
        ("Completed", "container engine ended with exit code 0", True),
    ),
    "a code that is no signal's": (
        engine(ended(255)),
        ("Error", "container engine ended with exit code 255", True),
    ),
    "ended, and started again": (
        engine(RUNNING, ended(1)),
        ("Error", "container engine ended with exit code 1", True),
    ),
    "ended, and waits to be started again": (
        engine(waiting("CrashLoopBackOff", "back-off 20s"), ended(1)),
        ("Error", "container engine ended with exit code 1", True),
    ),
    "its image cannot be pulled": (
        engine(waiting("ErrImagePull", "x:1: not found")),
        ("ImagePullBackOff", "container engine cannot start: x:1: not found", False),
    ),
    "its image cannot be pulled, as the kubelet says it between two tries": (
        engine(waiting("ImagePullBackOff", "Back-off pulling image: ErrImagePull: x:1: not found")),
        ("ImagePullBackOff", "container engine cannot start: x:1: not found", False),
    ),
    "a Secret is not there": (
        engine(waiting("CreateContainerConfigError", 'secret "hub" not found')),
        ("CreateContainerConfigError", 'container engine cannot start: secret "hub" not found', False),
    ),
    "plugins that cannot be installed, in the runtime's own words": (
        install(ended(1, message=json.dumps(REPORT))),
        ("PluginHasNoWheels", "container install-plugins: no wheel in /plugins", True),
    ),
    "plugins that could not be installed the first time": (
        install(RUNNING, ended(1)),
        ("Error", "container install-plugins ended with exit code 1", True),
    ),
    "what else stood in the termination message is nobody's business": (
        engine(ended(1, message="HF_TOKEN=hf_secret")),
        ("Error", "container engine ended with exit code 1", True),
    ),
}


@pytest.mark.parametrize(("status", "said"), SAID.values(), ids=SAID)
def test_containers_say(status: dict[str, Any], said: tuple[str, str, bool] | None) -> None:
    trouble = trouble_of(status)
    assert (trouble and trouble[:3]) == said


TIMES = {
    "it runs for the third time": (engine(RUNNING, ended(1)), 2),
    "it has ended for the third time": (engine(ended(1)), 3),
    "it waits for its fourth start": (engine(waiting("CrashLoopBackOff"), ended(1)), 3),
}


@pytest.mark.parametrize(("status", "times"), TIMES.values(), ids=TIMES)
def test_how_often_a_container_has_ended(status: dict[str, Any], times: int) -> None:
    (container,) = status["containerStatuses"]
    trouble = trouble_of({"containerStatuses": [{**container, "restartCount": 2}]})
    assert trouble is not None
    assert trouble.times == times


def test_words_are_cut() -> None:
    trouble = trouble_of(engine(waiting("ErrImagePull", "no " * 999)))
    assert trouble is not None
    assert len(trouble.message) == 256


@given(anything, anything)
def test_no_status_raises(one: Any, other: Any) -> None:
    for status in (
        {"containerStatuses": one},
        {"initContainerStatuses": [{"state": one, "lastState": other}]},
    ):
        hash(trouble_of(status))
