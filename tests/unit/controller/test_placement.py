"""When a placement has failed, and for how long its node is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.controller.placement import (
    FORGIVEN_S,
    REST_MAX_S,
    REST_START_S,
    TIDY_S,
    UNSCHEDULABLE_S,
    Failures,
)
from bowsprit.inventory.containers import Trouble
from bowsprit.inventory.pods import PodView
from tests.unit.controller.objects import THREE, groups, pinned, pod, rank, ranks, workload

BIND_S = 30.0
REFUSED = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "ready": False}


@pytest.fixture
def failures() -> Failures:
    return Failures(BIND_S)


def fail(failures: Failures, name: str, now: float, node: str = "n1") -> None:
    failures.observe([pod(name, node, **REFUSED)], now)


SILENT = pinned("a", "n1")
UNSCHEDULABLE = pinned("a", "n1", reason="Unschedulable")
PATIENCE = {
    "a pod of which the scheduler has said nothing": (SILENT, BIND_S),
    "a pod that the scheduler has refused": (UNSCHEDULABLE, UNSCHEDULABLE_S),
}


@pytest.mark.parametrize(("view", "seconds"), PATIENCE.values(), ids=PATIENCE)
def test_it_has_so_long_to_bind(view: PodView, seconds: float, failures: Failures) -> None:
    failures.observe([view], 100)
    failures.observe([view], 100 + seconds - 0.1)
    assert not failures.dooms(view)
    assert failures.next_wake([view], 100 + seconds - 0.1) == pytest.approx(0.1)
    failures.observe([view], 100 + seconds)
    assert failures.dooms(view)
    assert failures.at_rest(100 + seconds) == {"n1"}


UNTROUBLED = {
    "bound in time": pod("a", "n1"),
    "still gated": pod("a"),
    "on its way out": pinned("a", "n1", terminating=True),
    "ended by itself": pod("a", "n1", phase="Failed"),
    "done": pod("a", "n1", phase="Succeeded"),
}


@pytest.mark.parametrize("view", UNTROUBLED.values(), ids=UNTROUBLED)
def test_no_node_rests_for_a_pod_that_is(view: PodView, failures: Failures) -> None:
    for now in (0.0, 1000.0):
        failures.observe([view], now)
    assert not failures.at_rest(1000)
    assert not failures.dooms(view)


def test_a_refused_pod_lets_its_node_rest_once_however_often_it_is_seen(failures: Failures) -> None:
    for now in (0.0, 1.0, 2.0):
        fail(failures, "a", now)
    assert failures.at_rest(REST_START_S - 0.1) == {"n1"}
    assert not failures.at_rest(REST_START_S)


def test_the_rest_doubles_with_each_failure_up_to_a_limit(failures: Failures) -> None:
    now = 0.0
    for number in range(8):
        fail(failures, f"pod-{number}", now)
        rest = min(REST_START_S * 2**number, REST_MAX_S)
        assert failures.at_rest(now + rest - 0.1) == {"n1"}
        assert not failures.at_rest(now + rest)
        now += rest


def test_pods_that_run_well_beside_it_do_not_shorten_the_next_rest(failures: Failures) -> None:
    """A node with one bad GPU of four runs three pods well, for ever."""
    fail(failures, "a", 0)
    failures.observe([pod("neighbour", "n1")], REST_START_S + 1)
    fail(failures, "b", REST_START_S + 2)
    assert failures.at_rest(REST_START_S + 2 + 2 * REST_START_S - 0.1) == {"n1"}


def test_a_node_that_has_not_failed_for_long_starts_again_with_a_short_rest(failures: Failures) -> None:
    for number in range(5):
        fail(failures, f"pod-{number}", 0)
    later = REST_MAX_S + FORGIVEN_S + 1
    fail(failures, "later", later)
    assert failures.at_rest(later + REST_START_S - 0.1) == {"n1"}
    assert not failures.at_rest(later + REST_START_S)


def test_each_node_rests_on_its_own(failures: Failures) -> None:
    fail(failures, "a", 0, "n1")
    fail(failures, "b", 10, "n2")
    assert failures.at_rest(REST_START_S + 1) == {"n2"}
    assert failures.next_wake([], 10) == pytest.approx(REST_START_S - 10)


def test_a_pod_that_binds_after_all_is_forgiven(failures: Failures) -> None:
    failures.observe([SILENT], 0)
    failures.observe([SILENT], BIND_S)
    failures.observe([pod("a", "n1")], BIND_S + 1)
    assert not failures.dooms(pod("a", "n1"))


def test_nothing_is_remembered_of_pods_that_are_gone(failures: Failures) -> None:
    fail(failures, "gone", 0)
    failures.observe([pinned("waits", "n2"), pinned("also-gone", "n2")], 0)
    failures.forget_all_but([pinned("waits", "n2")], 0)
    assert failures.judged == set()
    assert set(failures.unbound_since) == {"uid-waits"}
    assert failures.at_rest(1) == {"n1"}


def test_a_node_is_remembered_until_it_is_forgiven(failures: Failures) -> None:
    fail(failures, "a", 0)
    forgiven = REST_START_S + FORGIVEN_S
    for now, known in ((0.0, {"n1"}), (forgiven - 1, {"n1"}), (forgiven + TIDY_S, set())):
        failures.forget_all_but([], now)
        assert set(failures.resting) == known


LWS = workload("lws", THREE)
TOLD = {
    "in the kubelet's words": (
        pod("lws-0", "n1", message="no GPU", **REFUSED),
        ("UnexpectedAdmissionError", "no GPU"),
    ),
    "in the scheduler's words": (
        pinned("lws-0", "n1", reason="Unschedulable", message="0/2 nodes are available"),
        ("Unschedulable", "0/2 nodes are available"),
    ),
    "in our own words when the scheduler says nothing": (
        pinned("lws-0", "n1"),
        ("NotBound", "not bound to n1 within 30 s; is the scheduler running?"),
    ),
}


@pytest.mark.parametrize(("view", "words"), TOLD.values(), ids=TOLD)
def test_a_failure_is_told(view: PodView, words: tuple[str, str], failures: Failures) -> None:
    failed = rank(view, 0)
    for now in (0, BIND_S):
        failures.observe([failed], now)
    (group,) = groups(LWS, [failed])
    told = failures.of(group)
    assert told is not None
    assert (told.reason, told.message) == words
    assert told.binding


def test_a_failure_is_told_until_the_group_stands_again_though_the_pod_is_gone(failures: Failures) -> None:
    failures.observe([rank(pod("lws-0-1", "n2", **REFUSED), 1)], 0)
    for pods in (ranks("n1", "", ""), ranks("", "", ""), ranks("n1", "n2", "")):
        failures.forget_all_but(pods, TIDY_S)
        found = groups(LWS, pods)
        failures.settle(found)
        assert failures.of(found[0]) is not None
    (neighbour,) = groups(LWS, ranks("n1", "n2", "n3", group=1))
    assert failures.of(neighbour) is None
    again = groups(LWS, ranks("n1", "n4", "n3"))
    failures.settle(again)
    assert failures.of(again[0]) is None


def test_the_failures_of_groups_without_pods_are_forgotten(failures: Failures) -> None:
    failures.observe([rank(pod("lws-0-1", "n2", **REFUSED), 1)], 0)
    failures.settle(groups(LWS, ranks("n1", "n2", "n3", group=1)))
    failures.forget_all_but([], 0)
    assert failures.failed == {}
    assert failures.stood == failures.bereft == set()


def test_all_pods_are_looked_through_once_in_a_while_only(failures: Failures) -> None:
    failures.forget_all_but([], 0)
    fail(failures, "a", 1)
    failures.forget_all_but([], TIDY_S - 1)
    assert failures.judged == {"uid-a"}
    failures.forget_all_but([], TIDY_S)
    assert failures.judged == set()


def test_a_group_that_stood_and_has_a_new_member_must_go_until_it_starts_anew(failures: Failures) -> None:
    """Somebody deletes a rank, and its StatefulSet has replaced the pod before anybody looks."""
    standing = ranks("n1", "n2", "n3")
    failures.settle(groups(LWS, standing))
    replaced = ranks("n1", "", "n3")
    failures.observe(replaced, 1)
    assert [failures.dooms(each) for each in replaced] == [True, False, True]
    anew = ranks("", "", "")
    failures.observe(anew, 2)
    failures.settle(groups(LWS, anew))
    half_pinned = ranks("n1", "", "")
    failures.observe(half_pinned, 3)
    assert not any(failures.dooms(each) for each in half_pinned)


def test_a_group_that_has_not_stood_yet_is_pinned_in_peace(failures: Failures) -> None:
    for pods in (ranks("", "", ""), ranks("n1", "", ""), ranks("n1", "n2", "")):
        failures.observe(pods, 0)
        failures.settle(groups(LWS, pods))
        assert not any(failures.dooms(each) for each in pods)


def test_a_rank_that_is_refused_dooms_its_group_though_it_is_replaced_at_once(failures: Failures) -> None:
    failures.observe([rank(pod("lws-0-1", "n2", **REFUSED), 1)], 0)
    replaced = ranks("n1", "", "n3")
    failures.observe(replaced, 0)
    assert failures.dooms(replaced[0])


SIGKILL = Trouble("Error", "container engine was ended by SIGKILL (exit code 137)", ended=True)
DEAD = rank(pod("lws-0-1", "n2", ready=False, trouble=SIGKILL), 1)


def die(failures: Failures, now: float) -> None:
    """A group dies of one rank, starts anew and stands."""
    failures.observe([DEAD], now)
    for pods in (ranks("", "", ""), ranks("n1", "n2", "n3")):
        failures.settle(groups(LWS, [replace(each, ready=False) for each in pods]))


def test_a_rank_that_ends_dooms_its_group_and_no_node_rests(failures: Failures) -> None:
    failures.observe([DEAD], 0)
    assert all(failures.dooms(each) for each in ranks("n1", "n2", "n3"))
    assert not failures.dooms(rank(pod("lws-1", "n4"), 0, group=1))
    assert not failures.at_rest(0)


LIVING = {
    "a rank that ends because it is told to": replace(DEAD, terminating=True),
    "a rank that cannot start yet": replace(DEAD, trouble=SIGKILL._replace(ended=False)),
    "a replica of its own, which starts again by itself": pod("dep-7d9f-a", "n1", trouble=SIGKILL),
}


@pytest.mark.parametrize("view", LIVING.values(), ids=LIVING)
def test_no_group_is_doomed_by(view: PodView, failures: Failures) -> None:
    failures.observe([view], 0)
    assert not failures.dooms(view)
    assert not failures.backoff.groups


def test_a_dead_rank_is_told_until_its_group_serves_again(failures: Failures) -> None:
    die(failures, 0)
    (starting,) = groups(LWS, [replace(each, ready=False) for each in ranks("n1", "n2", "n3")])
    told = failures.of(starting)
    assert told is not None
    assert (told.reason, told.ended) == ("Error", True)
    assert told.message == "pod lws-0-1: container engine was ended by SIGKILL (exit code 137)"
    (serving,) = groups(LWS, ranks("n1", "n2", "n3"))
    failures.settle([serving])
    assert failures.of(serving) is None


def test_a_group_that_goes_on_dying_waits_longer_each_time(failures: Failures) -> None:
    for now, pause in ((0, 0), (1, 10), (2, 20)):
        die(failures, now)
        assert bool(failures.backoff.paused(now)) is bool(pause)
        assert failures.next_wake([], now) == (pause or None)
    (group,) = groups(LWS, ranks("n1", "n2", "n3"))
    told = failures.of(replace(group, pods=(DEAD,)))
    assert told is not None
    assert (told.times, told.pause_seconds) == (3, 20)


def test_the_ranks_that_die_of_the_first_ones_death_are_not_counted(failures: Failures) -> None:
    for view in ranks("n1", "n2", "n3"):
        failures.observe([replace(view, ready=False, trouble=SIGKILL)], 0)
    assert not failures.backoff.paused(0)


def test_there_is_nothing_to_wake_for_when_no_clock_runs(failures: Failures) -> None:
    assert failures.next_wake([pod("a", "n1"), pod("b")], 0) is None
