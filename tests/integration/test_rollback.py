"""A revision that fails gives way to the one that served, and is not tried again until the spec changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.integration.arena import PCIE, SXM, Arena, Json
from tests.integration.faults import messages, patch_status, wait_event
from tests.integration.life import (
    TWO_PODS,
    engine,
    never_ready,
    revision_of,
    revisions,
    selected_revision,
    target,
    uids,
    workloads,
)
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration

SOON = {"progressDeadlineSeconds": 3}
LONG = {"progressDeadlineSeconds": 3600}
LIVING = {"engine": None, "template": None}
"""Takes a never_ready() back."""


@contextmanager
def serving_on(arena: Arena, nodes: Iterable[str], pods: int) -> Iterator[None]:
    """At no instant are fewer pods Ready, and no GPU is promised twice."""
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 4)).watching() as referee:
        arena.wait("the referee to see what serves", lambda: pods in referee.ready)
        begin = len(referee.ready)
        yield
    assert min(referee.ready[begin - 1 :]) >= pods


def failure(arena: Arena, model: str, reason: str) -> Json:
    """What the status keeps of it, once it is there."""
    arena.wait_reason(model, "Stalled", reason)
    failed = dict(arena.status(model)["revisions"]["failed"])
    assert failed["reason"] == reason
    return failed


def serving_again(arena: Arena, model: str, old: str) -> None:
    arena.wait(f"only revision {old} to be left", lambda: _only(arena, model, old))
    arena.wait("it to serve", lambda: arena.status(model).get("readyReplicas") == 1)
    assert selected_revision(arena, model) == old
    assert arena.condition(model, "Available")["status"] == "True"
    assert arena.condition(model, "Ready")["status"] == "False"
    assert arena.condition(model, "Progressing")["status"] == "False"
    assert arena.condition(model, "Reconciling")["status"] == "False"


def _only(arena: Arena, model: str, revision: str) -> bool:
    found = arena.pods(model)
    return (
        bool(found)
        and {revision_of(pod) for pod in found} == {revision}
        and len(workloads(arena, model)) == 1
    )


def pod_of(arena: Arena, model: str, revision: str) -> Json:
    """A pod of the revision that runs."""

    def running() -> list[Json]:
        mine = [pod for pod in arena.pods(model) if revision_of(pod) == revision]
        return [pod for pod in mine if pod["status"].get("phase") == "Running"]

    arena.wait(f"a pod of revision {revision} to run", lambda: bool(running()))
    return running()[0]


def on_trial(arena: Arena) -> tuple[list[str], str, Json]:
    """Nodes, the revision that serves, and the pod of a new one beside it that does not come up."""
    nodes = arena.nodes(1, gpus=2)
    arena.model("chat", rollout=LONG)
    arena.wait_ready("chat")
    old = target(arena, "chat")
    arena.patch("chat", never_ready(engine=engine("--seed=1")))
    return nodes, old, pod_of(arena, "chat", target(arena, "chat"))


def ended(arena: Arena, pod: Json, times: int, message: str = "") -> None:
    """The engine's container has ended so often, and waits to be started again."""
    how = {"exitCode": 1, "reason": "Error", "message": message}
    container = {
        "name": "engine",
        "image": "engine",
        "imageID": "",
        "ready": False,
        "restartCount": times - 1,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": how},
    }
    patch_status(arena, "pod", pod["metadata"]["name"], {"containerStatuses": [container]})


@pytest.mark.parametrize("shape", [{}, TWO_PODS], ids=["a Deployment", "a LeaderWorkerSet"])
def test_beside_the_old_one_it_serves_on_at_every_instant(stage: Arena, shape: dict[str, Any]) -> None:
    nodes = stage.nodes(1)
    stage.model("chat", rollout=SOON, **shape)
    stage.wait_ready("chat")
    old, before = target(stage, "chat"), uids(stage, "chat")
    with serving_on(stage, nodes, len(before)):
        stage.patch("chat", never_ready(engine=engine("--seed=1")))
        new = target(stage, "chat")
        failed = failure(stage, "chat", "ProgressDeadlineExceeded")
        serving_again(stage, "chat", old)
        assert uids(stage, "chat") == before
    assert failed["revision"] == new
    assert "0 of 1 replica ready, and no other one within 3 s" in failed["message"]
    assert stage.status("chat")["revisions"]["target"] == new
    assert f"Revision {old}, which served before, is restored" in wait_event(
        stage, "chat", "ProgressDeadlineExceeded"
    )
    assert len(messages(stage, "chat", "ProgressDeadlineExceeded")) == 1
    stage.patch("chat", LIVING)
    stage.wait_ready("chat")
    assert uids(stage, "chat") == before
    assert "failed" not in stage.status("chat")["revisions"]


@pytest.mark.parametrize(("shape", "gpus"), [({}, 1), (TWO_PODS, 2)], ids=["Deployment", "LeaderWorkerSet"])
def test_in_the_place_of_the_old_one_that_gets_its_gpus_back(
    stage: Arena, shape: dict[str, Any], gpus: int
) -> None:
    nodes = stage.nodes(1, gpus=gpus)
    stage.model("chat", rollout=SOON, **shape)
    stage.wait_ready("chat")
    stage.model("rival")
    stage.wait_reason("rival", "GPUsReserved", "WaitingForGPUs")
    old = target(stage, "chat")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, gpus)).watching():
        stage.patch("chat", never_ready(engine=engine("--seed=1")))
        failure(stage, "chat", "ProgressDeadlineExceeded")
        serving_again(stage, "chat", old)
    assert not stage.nodes_of("rival")


def test_an_engine_that_ends_again_and_again_is_told_and_not_waited_for(stage: Arena) -> None:
    nodes, old, pod = on_trial(stage)
    with serving_on(stage, nodes, 1):
        ended(stage, pod, 4)
        stage.wait(
            "the fourth end to be told",
            lambda: "ended with exit code 1" in stage.condition("chat", "Ready")["message"],
        )
        assert stage.condition("chat", "Stalled")["status"] == "False"
        ended(stage, pod, 5)
        failed = failure(stage, "chat", "CrashLooping")
        serving_again(stage, "chat", old)
    assert "has ended 5 times before the revision served" in failed["message"]
    assert f"pod {pod['metadata']['name']}: container engine ended with exit code 1" in failed["message"]


def test_a_self_check_that_is_not_passed_fails_it_at_once_in_its_own_words(stage: Arena) -> None:
    nodes, old, pod = on_trial(stage)
    said = "/v1/completions answered without 'Paris': ' is a city in'"
    report = {
        "v": 1,
        "verdict": "Broken",
        "faults": [{"reason": "VerifyFailed", "blame": "model", "message": said}],
    }
    with serving_on(stage, nodes, 1):
        ended(stage, pod, 1, json.dumps(report))
        failed = failure(stage, "chat", "VerifyFailed")
        serving_again(stage, "chat", old)
    assert said in failed["message"]
    assert said in wait_event(stage, "chat", "VerifyFailed")


def test_an_edit_while_it_fails_starts_the_new_one_and_a_good_one_takes_over(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat", rollout=LONG)
    stage.wait_ready("chat")
    stage.patch("chat", never_ready(engine=engine("--seed=1")))
    first = target(stage, "chat")
    pod_of(stage, "chat", first)
    stage.patch("chat", {**never_ready(engine=engine("--seed=2")), "rollout": SOON})
    second = target(stage, "chat")
    assert failure(stage, "chat", "ProgressDeadlineExceeded")["revision"] == second
    stage.patch("chat", {"engine": engine("--seed=3"), "template": None})
    stage.wait_ready("chat")
    third = target(stage, "chat")
    stage.wait("only the good one to be left", lambda: _only(stage, "chat", third))
    assert stage.status("chat")["revisions"] == {"serving": third, "target": third}
    assert {first, second, third} < set(revisions(stage, "chat"))


def test_the_deadline_does_not_run_while_the_model_waits_for_gpus(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("other")
    stage.wait_ready("other")
    ours = {"nodeSelector": {"arena": stage.namespace}, "products": [PCIE]}
    stage.model("chat", rollout={**SOON, "mode": "Surge"}, accelerator=ours)
    stage.wait_ready("chat")
    old = target(stage, "chat")
    stage.patch("chat", never_ready(engine=engine("--seed=1")))
    new = target(stage, "chat")
    stage.wait_reason("chat", "Ready", "WaitingForGPUs")
    # Another model whose clock begins later comes to the end of it first.
    stage.nodes(1, gpus=1, product=SXM, labels={"pool": "clock"})
    stage.model("clock", rollout=SOON, **never_ready(accelerator={"nodeSelector": {"pool": "clock"}}))
    failure(stage, "clock", "ProgressDeadlineExceeded")
    assert "failed" not in stage.status("chat")["revisions"]
    assert stage.condition("chat", "Stalled")["status"] == "False"
    stage.kubectl("delete", "mdep", "other", "--wait=false")
    assert failure(stage, "chat", "ProgressDeadlineExceeded")["revision"] == new
    serving_again(stage, "chat", old)


def test_a_first_revision_that_fails_is_told_so_and_serves_when_it_can_after_all(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.model("chat", rollout=SOON, **never_ready())
    failure(stage, "chat", "ProgressDeadlineExceeded")
    told = stage.condition("chat", "Ready")
    assert "No revision has served before" in told["message"]
    (pod,) = stage.pods("chat")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    patch_status(stage, "pod", pod["metadata"]["name"], {"conditions": [ready]})
    stage.wait_ready("chat")
    assert "failed" not in stage.status("chat")["revisions"]


def test_no_operator_tries_it_again_and_none_gives_it_more_time(arena: Arena) -> None:
    nodes = arena.nodes(1, gpus=2)
    operator = arena.operator("operator-a", "--resync=5")
    arena.model("chat", rollout={"progressDeadlineSeconds": 20})
    arena.wait_ready("chat")
    old, before = target(arena, "chat"), uids(arena, "chat")
    arena.patch("chat", never_ready(engine=engine("--seed=1")))
    new = target(arena, "chat")
    pod_of(arena, "chat", new)
    arena.wait("the clock to run", lambda: "progress" in arena.status("chat")["revisions"])
    since = arena.status("chat")["revisions"]["progress"]["since"]
    operator.kill()
    operator.start()
    arena.wait("the operator to have looked", lambda: _acts(arena))
    assert arena.status("chat")["revisions"]["progress"]["since"] == since
    assert failure(arena, "chat", "ProgressDeadlineExceeded")["revision"] == new
    operator.kill()
    with serving_on(arena, nodes, 1):
        operator.start()
        arena.wait("the next operator to act", lambda: _acts(arena))
        serving_again(arena, "chat", old)
        assert uids(arena, "chat") == before
    assert len(messages(arena, "chat", "ProgressDeadlineExceeded")) <= 1


def _acts(arena: Arena) -> bool:
    """It has taken in a change that was made just now."""
    priority = int(arena.get("chat")["spec"].get("priority", 0)) + 1
    arena.patch("chat", {"priority": priority})
    generation = arena.get("chat")["metadata"]["generation"]
    arena.wait("the status to know it", lambda: arena.status("chat")["observedGeneration"] == generation)
    return True
