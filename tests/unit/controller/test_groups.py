"""Which replicas exist, and what state each is in: from pods alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.controller.groups import State, stragglers_of
from bowsprit.inventory.pods import PodView
from tests.unit.controller.objects import THREE, groups, pinned, pod, rank, ranks, workload

LWS = workload("lws", THREE)
WHOLE = ranks("n1", "n2", "n3")


def with_rank(number: int, view: PodView) -> list[PodView]:
    """The whole group with one rank replaced."""
    return [rank(view, number) if each.labels == rank(view, number).labels else each for each in WHOLE]


STATES: dict[str, tuple[list[PodView], State]] = {
    "all gated": (ranks("", "", ""), State.WAITING),
    "some not created yet": (ranks("", ""), State.WAITING),
    "pinned in part": (ranks("n1", "n2", ""), State.PARTIAL),
    "all pinned of those that exist": (ranks("n1", "n2"), State.PARTIAL),
    "all bound": (WHOLE, State.STANDING),
    "all pinned, none bound": (
        [rank(pinned(f"lws-0-{number}", f"n{number}"), number) for number in range(3)],
        State.STANDING,
    ),
    "one on its way out": (with_rank(1, pod("lws-0-1", "n2", terminating=True)), State.LEAVING),
    "one on its way out and others gated": (
        [*ranks("", "")[:2], rank(pod("lws-0-2", "n3", terminating=True), 2)],
        State.LEAVING,
    ),
    "one on its way out beats one that failed": (
        [
            rank(pod("lws-0", "n1", phase="Failed"), 0),
            *with_rank(1, pod("lws-0-1", "n2", terminating=True))[1:],
        ],
        State.LEAVING,
    ),
    "one failed": (with_rank(2, pod("lws-0-2", "n3", phase="Failed")), State.BROKEN),
    "one failed and the others are still gated": (
        [*ranks("", "")[:2], rank(pod("lws-0-2", "n3", phase="Failed"), 2)],
        State.BROKEN,
    ),
}


@pytest.mark.parametrize(("pods", "state"), STATES.values(), ids=STATES)
def test_a_group_with(pods: list[PodView], state: State) -> None:
    (group,) = groups(LWS, pods, lambda view: view.finished)
    assert group.state is state


def test_a_pod_that_another_reason_breaks_breaks_its_group_and_no_other() -> None:
    pods = [*ranks("n1", "n2", "n3"), *ranks("n4", "n5", "n6", group=1)]
    first, second = groups(LWS, pods, lambda view: view.node == "n2")
    assert (first.state, second.state) == (State.BROKEN, State.STANDING)


def test_ranks_are_in_order_and_groups_by_number() -> None:
    pods = [*ranks("", "", "", group=10), *ranks("n1", "n2", "n3", group=2)]
    found = groups(LWS, list(reversed(pods)))
    assert [group.index for group in found] == ["2", "10"]
    assert found[0].nodes == ("n1", "n2", "n3")


def test_each_pod_of_a_deployment_is_a_group() -> None:
    one, two = groups(workload("llama-abc"), [pod("llama-abc-7d9f-x1", "n1"), pod("llama-abc-7d9f-x2")])
    assert (one.state, two.state) == (State.STANDING, State.WAITING)


STRANGERS = {
    "of a workload that is not there": pod("other-7d9f-x1", "n1"),
    "whose name only begins alike": pod("llama-abc-more-7d9f-x1", "n1"),
    "of a set that is not there": rank(pod("gone-0", "n1"), 0, of="gone"),
    "without a readable group number": rank(pod("bare", "n1"), 0, of="none"),
}


@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
def test_a_pod_is_in_no_group(stranger: PodView) -> None:
    assert groups([workload("llama-abc"), LWS], [stranger]) == ()


def test_a_workload_whose_layout_cannot_be_read_has_no_groups() -> None:
    assert groups(replace(LWS, layout=None), WHOLE) == ()


def test_a_group_is_ready_when_all_its_pods_are() -> None:
    (whole,) = groups(LWS, WHOLE)
    (part,) = groups(LWS, with_rank(1, pod("lws-0-1", "n2", ready=False)))
    assert whole.ready
    assert not part.ready


def test_pods_whose_workload_is_gone_are_on_their_way_out_unless_it_was_orphaned() -> None:
    left = [replace(view, owner_uid="uid-set") for view in ranks("n1", "n2", of="gone")]
    single = pod("was-7d9f-a", "n3", owner_uid="uid-replica-set")
    orphan = pod("adrift-7d9f-a", "n4", owner_uid="uid-replica-set")
    by_hand = pod("mine", "n5")
    finished = replace(single, name="was-7d9f-b", uid="uid-b", phase="Failed")
    standing = replace(pod("dep-7d9f-a", "n6"), owner_uid="uid-replica-set")
    found = groups([workload("dep")], [standing])
    every = [*left, single, orphan, by_hand, finished, standing]
    assert stragglers_of(every, found, {"adrift"}) == (tuple(left), (single,))
