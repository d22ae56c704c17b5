"""Passes of the loop over a book of real objects, with a writer that only takes notes."""

from __future__ import annotations

from typing import Any

import pytest

from bowsprit.controller import backoff
from tests.unit.controller.stage import A, B, Stage, manifest


async def test_a_gpu_that_is_being_pinned_for_a_model_that_is_gone_is_not_given_to_another(
    stage: Stage,
) -> None:
    stage.model("a")
    await stage.passes()
    stage.apply(A)
    stage.notes.hold(A)
    await stage.passes()
    assert stage.pinned(A) == ["n1"]

    # That pin is on its way to the API server. The model goes, and another wants the GPU and has its pod.
    stage.remove("a")
    stage.model("b")
    await stage.passes()
    stage.apply(B)
    await stage.passes()
    assert [each["pods"] for each in stage.notes.status[B]["plan"]["replicas"]] == [
        [{"node": "n1", "gpus": 1}]
    ]
    assert stage.pinned(B) == []

    stage.notes.let_go()
    await stage.loop.drain()
    stage.book.queue.add(B)
    await stage.passes()
    assert stage.pinned(B) == ["n1"]


async def test_a_pinned_pod_keeps_its_gpu_though_a_user_takes_the_label_of_its_model_off(
    stage: Stage,
) -> None:
    stage.model("a")
    await stage.passes()
    stage.apply(A)
    await stage.passes()
    assert stage.pinned(A) == ["n1"]
    stage.pinned_and_unlabelled(A, "n1")
    stage.remove("a")
    stage.model("b")
    await stage.passes()
    assert "plan" not in stage.notes.status[B]


async def test_a_model_that_cannot_be_read_does_not_stop_the_others(stage: Stage) -> None:
    stage.facts.unreadable = {A}
    stage.model("a")
    stage.model("b")
    await stage.passes()
    assert A not in stage.notes.status
    assert stage.notes.status[B]["conditions"]
    assert stage.book.queue.delayed >= 1


async def test_a_model_whose_children_cannot_be_deleted_does_not_stop_the_others(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    stage.notes.sweep_fails = {A}
    stage.remove("a")
    stage.model("b")
    await stage.passes()
    assert stage.notes.status[B]["plan"]["replicas"]
    assert A not in stage.notes.swept
    assert stage.book.queue.delayed >= 1


async def test_facts_that_cannot_be_read_again_leave_the_model_as_it_is(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    before = stage.notes.status[A]["plan"]
    stage.facts.unreadable = {A}
    stage.model("a", replicas=1)
    await stage.passes()
    assert stage.notes.status[A]["plan"] == before


CHANGES: dict[str, dict[str, Any]] = {
    "the engine's arguments": {"engine": {"args": ["--enforce-eager"]}},
    "another model": {"model": {"uri": "hf://example/another"}},
    "a proof is asked for": {"preflight": "Required"},
    "another object of the name": {},
}


@pytest.mark.parametrize("change", CHANGES)
async def test_facts_of_what_was_asked_before_are_not_used_for_what_is_asked_now(
    change: str, stage: Stage
) -> None:
    """A revision keeps the facts that it was made with: wrong ones would stay."""
    stage.model("a")
    await stage.passes()
    made = stage.notes.status.pop(A)["revisions"]["target"]
    stage.facts.unreadable = {A}
    changed = manifest("a", **CHANGES[change])
    if change == "another object of the name":
        changed["metadata"]["uid"] = "uid-of-another"
    stage.book.models.upsert(stage._dated(changed))
    await stage.passes()
    assert A not in stage.notes.status

    stage.facts.unreadable = set()
    stage.book.queue.add(A)
    await stage.passes()
    again = stage.notes.status[A]["revisions"]["target"]
    assert (again == made) is (change in ("a proof is asked for", "another object of the name"))


async def test_our_own_status_is_no_reason_for_a_pass_and_anybody_elses_is(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    written = stage._dated({**manifest("a"), "status": stage.notes.status[A]})
    stage.book.status_written(written)
    assert len(stage.book.queue) == 0
    stage.book.models.upsert(stage._dated({**manifest("a"), "status": {}}))
    assert len(stage.book.queue) == 1


async def test_a_promise_stays_though_nothing_is_seen_of_it_before_the_next_pass(stage: Stage) -> None:
    stage.model("a")
    await stage.passes()
    promised = stage.notes.status[A]["plan"]
    stage.model("b", priority=10)
    await stage.passes()
    assert stage.notes.status[A]["plan"] == promised
    assert "plan" not in stage.notes.status[B]
    assert stage.notes.status[B]["waiting"]["position"] == 1


async def test_a_group_whose_promise_is_given_up_goes_whole_though_nothing_more_is_seen_of_it(
    stage: Stage,
) -> None:
    """One rank is refused, and its StatefulSet has replaced the pod before anybody looks."""
    for name in ("n2", "n3"):
        stage.node(name)
    stage.model("a", parallelism={"pipeline": 2, "gpusPerPod": 1})
    await stage.passes()
    stage.apply(A)
    first, second = (each["node"] for each in stage.notes.status[A]["plan"]["replicas"][0]["pods"])
    stage.rank(A, 0, first)
    stage.rank(A, 1, second)
    await stage.passes()
    stage.rank(A, 1, second, phase="Failed", reason="UnexpectedAdmissionError")
    stage.rank(A, 1, "")
    await stage.passes()
    assert {each.kind for each in stage.notes.steps[A].evictions} == {"Pod"}
    assert len(stage.notes.steps[A].evictions) == 2
    assert stage.pinned(A) == []


ENDED = {
    "containerStatuses": [
        {"name": "engine", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "lastState": {}}
    ]
}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
RESTARTED = {
    "containerStatuses": [
        {
            "name": "engine",
            "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "Error"}},
        }
    ]
}


async def two_ranks(stage: Stage) -> None:
    stage.node("n2")
    stage.model("a", parallelism={"pipeline": 2, "gpusPerPod": 1})
    await stage.passes()
    stage.apply(A)


async def serving(stage: Stage, life: int) -> None:
    """Both ranks of a group are new, get their nodes and are Ready."""
    for number in (0, 1):
        stage.rank(A, number, "", uid=f"life-{life}-{number}")
    await stage.passes()
    for number, pinned in enumerate(stage.pinned(A)):
        stage.rank(A, number, pinned, uid=f"life-{life}-{number}", **READY)
    await stage.passes()


def condition(stage: Stage) -> tuple[str, str]:
    (ready,) = (each for each in stage.notes.status[A]["conditions"] if each["type"] == "Ready")
    return ready["status"], ready["message"]


async def test_a_group_of_which_a_rank_ends_goes_whole_at_once_and_is_not_ready_until_it_serves_again(
    stage: Stage,
) -> None:
    await two_ranks(stage)
    await serving(stage, 1)
    assert condition(stage)[0] == "True"
    stage.rank(A, 1, "n2", uid="life-1-1", **ENDED)
    await stage.passes()
    assert {each.grace_seconds for each in stage.notes.steps[A].evictions} == {1}
    assert len(stage.notes.steps[A].evictions) == 2
    status, message = condition(stage)
    assert status == "False"
    assert "container engine ended with exit code 0. Its pods are replaced" in message
    await serving(stage, 2)
    assert condition(stage)[0] == "True"


async def test_a_group_whose_rank_was_started_again_in_place_is_not_ready(stage: Stage) -> None:
    """The kubelet may show the end of a container and its new start at once."""
    await two_ranks(stage)
    await serving(stage, 1)
    stage.rank(A, 1, "n2", uid="life-1-1", **RESTARTED, **READY)
    await stage.passes()
    assert condition(stage)[0] == "False"
    assert len(stage.notes.steps[A].evictions) == 2


async def test_a_group_that_dies_again_gets_its_nodes_after_a_pause(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "START_S", 0.05)
    await two_ranks(stage)
    for life in (1, 2):
        await serving(stage, life)
        assert condition(stage)[0] == "True"
        stage.rank(A, 1, "n2", uid=f"life-{life}-1", **RESTARTED)
        await stage.passes()
    for number in (0, 1):
        stage.rank(A, number, "", uid=f"life-3-{number}")
    await stage.passes()
    assert stage.pinned(A) == []
    assert "2 deaths in a row: it starts again 0.05 s after the last." in condition(stage)[1]
    await stage.loop.step()  # the end of the pause wakes it
    await stage.loop.drain()
    assert stage.pinned(A) == ["n1", "n2"]


async def test_a_group_on_cpus_that_stands_again_before_anybody_looks_is_left_alone(stage: Stage) -> None:
    """Nothing holds its new pods back, so there may be no pass that sees them wait."""
    stage.model("a", accelerator={"resource": "cpu"}, parallelism={"pipeline": 2})
    await stage.passes()
    stage.apply(A)
    for life in range(3):
        for number in (0, 1):
            stage.rank(A, number, "n1", uid=f"life-{life}-{number}", **READY)
        await stage.passes()
        assert stage.notes.steps[A].evictions == ()
        stage.rank(A, 1, "n1", uid=f"life-{life}-1", **ENDED)
        await stage.passes()
        assert {each.uid for each in stage.notes.steps[A].evictions} == {f"life-{life}-0", f"life-{life}-1"}
        # What is left of it must go even when the one that died is replaced already.
        stage.rank(A, 1, "n1", uid=f"life-{life}-new", **READY)
        await stage.passes()
        assert f"life-{life}-0" in {each.uid for each in stage.notes.steps[A].evictions}
