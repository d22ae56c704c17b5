"""What was promised against what is there: every group finds its promise, and no promise is taken twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.controller.children import Child
from bowsprit.controller.replicas import Replicas, match
from bowsprit.inventory.pods import PodView
from bowsprit.status.replicas import RecordedReplica
from tests.unit.controller.objects import (
    NEW,
    OLD,
    ONE,
    THREE,
    groups,
    pinned,
    pod,
    promise,
    rank,
    ranks,
    replica,
    workload,
)

DEPLOYMENT = workload("dep", ONE)
LWS = workload("lws", THREE)
OLD_LWS = workload("was", THREE, OLD)


def matched(
    pods: Sequence[PodView],
    *recorded: RecordedReplica,
    target: str | None = NEW,
    serving: str | None = OLD,
    more: Sequence[Child] = (),
) -> Replicas:
    found = groups([DEPLOYMENT, LWS, OLD_LWS, *more], pods, lambda view: view.finished)
    return match(found, recorded, target, serving)


def single(suffix: str, node: str = "") -> PodView:
    return pod(f"dep-7d9f-{suffix}", node)


def test_a_group_on_the_promised_nodes_has_taken_up_its_promise_with_its_words() -> None:
    found = matched(ranks("n1", "n2", "n3"), promise(4, THREE, "n1", "n2", "n3", why="because"))
    ((_, plan),) = found.standing
    assert (plan.index, plan.why) == (4, "because")
    assert found.promised == ()


def test_the_nodes_of_a_promise_may_be_taken_by_any_rank() -> None:
    found = matched(ranks("n3", "n1", "n2"), promise(0, THREE, "n1", "n2", "n3"))
    ((_, plan),) = found.standing
    assert [each.node for each in plan.pods] == ["n3", "n1", "n2"]
    assert found.promised == ()


def test_a_promise_that_nobody_has_taken_up_is_still_owed() -> None:
    found = matched(ranks("", "", ""), promise(0, THREE, "n1", "n2", "n3"))
    assert found.promised == (replica(0, THREE, "n1", "n2", "n3"),)
    assert len(found.waiting) == 1


def test_a_group_that_stands_without_a_record_keeps_its_nodes_and_gets_a_number_of_its_own() -> None:
    found = matched([single("a", "n1"), single("b", "n2")], promise(0, ONE, "n2"))
    assert {plan.pods[0].node for _, plan in found.standing} == {"n1", "n2"}
    assert {plan.index for _, plan in found.standing} == {0, 1}
    assert found.promised == ()


def test_of_two_groups_on_equal_nodes_each_takes_a_promise_of_its_own() -> None:
    pods = [single("a", "n1"), single("b", "n1")]
    found = matched(pods, promise(0, ONE, "n1"), promise(1, ONE, "n1"))
    assert sorted(plan.index for _, plan in found.standing) == [0, 1]
    assert found.promised == ()


PARTIAL = {
    "a group that was pinned in part goes on with the promise that contains it": (
        ranks("n1", "", ""),
        [promise(0, THREE, "n1", "n2", "n3")],
        [0],
        0,
    ),
    "one that no promise contains must go": (
        ranks("n1", "n9", ""),
        [promise(0, THREE, "n1", "n2", "n3")],
        [],
        1,
    ),
    "one without any record of it must go": (ranks("n1", "", ""), [], [], 1),
    "one of an older revision must go": (
        ranks("n1", "", "", of="was"),
        [promise(0, THREE, "n1", "n2", "n3", revision=OLD)],
        [],
        1,
    ),
    "two groups each take a promise of their own": (
        [*ranks("n1", "", ""), *ranks("n1", "", "", group=1)],
        [promise(0, THREE, "n1", "n2", "n3"), promise(1, THREE, "n1", "n4", "n5")],
        [0, 1],
        0,
    ),
    "of two groups that fit only one promise, one must go": (
        [*ranks("n1", "", ""), *ranks("n2", "", "", group=1)],
        [promise(0, THREE, "n1", "n2", "n3"), promise(1, THREE, "n4", "n5", "n6")],
        [0],
        1,
    ),
    "one on the same node twice needs a promise that names it twice": (
        ranks("n1", "n1", ""),
        [promise(0, THREE, "n1", "n2", "n3"), promise(1, THREE, "n1", "n1", "n3")],
        [1],
        0,
    ),
}


@pytest.mark.parametrize(("pods", "recorded", "taken", "lost"), PARTIAL.values(), ids=PARTIAL)
def test_in_part(pods: list[PodView], recorded: list[RecordedReplica], taken: list[int], lost: int) -> None:
    found = matched(pods, *recorded)
    assert [plan.index for _, plan in found.partial] == taken
    assert len(found.lost) == lost
    if taken:
        assert {plan for _, plan in found.partial} <= set(found.promised)


def test_a_standing_group_takes_its_promise_before_one_that_is_pinned_in_part() -> None:
    pods = [*ranks("n1", "n2", ""), *ranks("n1", "n2", "n3", group=1)]
    found = matched(pods, promise(0, THREE, "n1", "n2", "n3"))
    assert len(found.standing) == 1
    assert found.promised == ()
    assert len(found.lost) == 1


def test_promises_of_an_older_revision_are_owed_to_nobody() -> None:
    found = matched([], promise(0, ONE, "n1", revision=OLD))
    assert found.promised == ()


def test_groups_of_an_older_revision_are_outgoing() -> None:
    found = matched(ranks("n1", "n2", "n3", of="was"), promise(0, THREE, "n1", "n2", "n3", revision=OLD))
    assert len(found.outgoing) == 1
    assert found.standing == found.promised == ()


STARTING = workload("passed", ONE, "in between")


def test_a_revision_that_never_served_goes_when_another_edit_has_come() -> None:
    attempt = pod("passed-7d9f-a", "n2", ready=False)
    found = matched([attempt], more=[STARTING])
    assert found.outgoing == ()
    assert [group.workload.revision for group, _ in found.leaving] == ["in between"]


def test_a_revision_of_which_something_is_ready_stays_until_the_new_one_serves() -> None:
    pods = [pod("passed-7d9f-a", "n2"), pod("passed-7d9f-b", "n3", ready=False)]
    assert len(matched(pods, more=[STARTING]).outgoing) == 2


def test_what_served_last_stays_though_it_is_not_ready_now() -> None:
    pods = [replace(view, ready=False) for view in ranks("n1", "n2", "n3", of="was")]
    assert len(matched(pods).outgoing) == 1
    assert matched(pods, serving=None).outgoing == ()


def test_while_the_spec_cannot_be_read_nothing_is_obsolete() -> None:
    attempt = pod("passed-7d9f-a", "n2", ready=False)
    assert len(matched([attempt], target=None, more=[STARTING]).outgoing) == 1


def test_old_replicas_that_are_ready_are_the_last_to_go() -> None:
    pods = [
        pod("passed-7d9f-a", "n1", ready=False),
        pod("passed-7d9f-b", "n2"),
        *ranks("n4", "n5", "n6", of="was"),
    ]
    recorded = [
        promise(0, ONE, "n1", revision="in between"),
        promise(1, ONE, "n2", revision="in between"),
        promise(2, THREE, "n4", "n5", "n6", revision=OLD),
    ]
    found = matched(pods, *recorded, more=[STARTING])
    assert [plan.index for _, plan in found.outgoing] == [2, 1, 0]


def test_groups_of_an_old_set_go_from_the_last_whichever_is_ready() -> None:
    unready = [replace(view, ready=False) for view in ranks("n1", "n2", "n3", of="was")]
    found = matched([*unready, *ranks("n4", "n5", "n6", group=1, of="was")])
    assert [group.index for group, _ in found.outgoing] == ["0", "1"]


def test_every_replica_has_a_number_of_its_own_whatever_its_revision() -> None:
    pods = [single("a", "n1"), *ranks("n4", "n5", "n6", of="was"), pod("passed-7d9f-a", "n2")]
    found = matched(pods, promise(0, ONE, "n3"), more=[STARTING])
    numbers = [plan.index for _, plan in (*found.standing, *found.outgoing)]
    numbers += [plan.index for plan in found.promised]
    assert sorted(numbers) == [0, 1, 2, 3]


def test_of_a_group_that_is_leaving_only_what_it_holds_comes_back() -> None:
    pods = ranks("n1", "n2", "n3")
    pods[0] = rank(pod("lws-0", "n1", terminating=True), 0)
    pods[1] = rank(pod("lws-0-1", "n2", phase="Failed"), 1)
    pods[2] = rank(pinned("lws-0-2", "n3"), 2)
    ((_, plan),) = matched(pods).leaving
    assert [each.node for each in plan.pods] == ["n1", "n3"]


def test_one_replica_has_one_promise_though_the_status_names_two() -> None:
    found = matched([], promise(0, ONE, "n1"), promise(0, ONE, "n2"), promise(1, ONE, "n3"))
    assert found.promised == (replica(0, ONE, "n1"), replica(1, ONE, "n3"))


def test_while_the_spec_cannot_be_read_everything_stands_as_an_older_revision() -> None:
    found = matched([single("a", "n1")], promise(0, ONE, "n1"), target=None)
    assert len(found.outgoing) == 1
    assert found.standing == found.promised == ()


def test_replicas_of_one_set_are_numbered_like_its_groups_because_scaling_down_takes_the_last() -> None:
    pods = [*ranks("n4", "n5", "n6"), *ranks("n1", "n2", "n3", group=1)]
    found = matched(pods, promise(0, THREE, "n1", "n2", "n3"), promise(1, THREE, "n4", "n5", "n6"))
    numbers = {group.index: plan.index for group, plan in found.standing}
    assert numbers == {"0": 0, "1": 1}


nodes = st.sampled_from(["", "n1", "n2", "n3"])
trios = st.tuples(nodes, nodes, nodes)
promised_trios = st.tuples(*[st.sampled_from(["n1", "n2", "n3"])] * 3)


@given(
    held=st.lists(trios, max_size=4),
    owed=st.lists(st.tuples(st.integers(0, 3), promised_trios), max_size=4),
)
def test_no_promise_is_counted_twice(
    held: list[tuple[str, str, str]], owed: list[tuple[int, tuple[str, str, str]]]
) -> None:
    pods = [view for number, trio in enumerate(held) for view in ranks(*trio, group=number)]
    found = matched(pods, *(promise(index, THREE, *trio) for index, trio in owed))
    indexes = [plan.index for _, plan in found.standing] + [plan.index for plan in found.promised]
    begun = [plan.index for _, plan in found.partial]
    assert len(begun) == len(set(begun))
    assert len({plan.index for plan in found.promised}) == len(found.promised)
    assert len(found.standing) + len(found.partial) + len(found.lost) + len(found.waiting) == len(held)
    assert len({plan.index for _, plan in found.standing}) == len(found.standing), indexes


def test_the_numbers_of_standing_and_promised_replicas_differ() -> None:
    """A group without a record may not take the number of a promise that is still owed."""
    pods = [single("a", "n1")]
    found = matched(pods, promise(0, ONE, "n2"))
    numbers = [plan.index for _, plan in found.standing] + [plan.index for plan in found.promised]
    assert sorted(numbers) == [0, 1]


def test_a_broken_group_is_leaving_and_its_promise_is_owed_again() -> None:
    pods = ranks("n1", "n2", "n3")
    pods[1] = replace(pods[1], phase="Failed")
    found = matched(pods, promise(0, THREE, "n1", "n2", "n3"))
    assert len(found.leaving) == 1
    assert len(found.promised) == 1
