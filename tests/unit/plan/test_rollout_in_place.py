"""A rollout without spare GPUs: old replicas give way in turn, and all but one of the wanted ones serve."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bowsprit.plan.planner import plan
from bowsprit.plan.result import ModelPlan
from bowsprit.plan.wish import Wish
from tests.unit.plan.examples import fleet, measured, node

PP = ((1, 1), (1, 2), (1, 3), (2, 1), (4, 1))


def serving(wish: Wish, **more) -> Wish:
    """The wish with all its standing replicas as an old revision that serves."""
    old = wish.standing
    return replace(wish, standing=(), outgoing=old, outgoing_ready=len(old), **more)


@dataclass
class Course:
    """A rollout as it goes: pods stop and get ready at once or later, as the test says."""

    wish: Wish
    nodes: tuple
    served: list[int] = field(default_factory=list)
    """Replicas that served, after every step."""

    def plan(self) -> ModelPlan:
        answer = plan([self.wish], replace(fleet(), nodes=self._left())).models[0]
        new = tuple(each for each in answer.replicas if each not in self.wish.standing)
        again = plan([replace(self.wish, promised=new)], replace(fleet(), nodes=self._left())).models[0]
        assert (again.replicas, again.retire) == (answer.replicas, answer.retire), (
            "planning again changes nothing"
        )
        return answer

    def _left(self) -> tuple:
        held: Counter[str] = Counter()
        for replica in (*self.wish.standing, *self.wish.outgoing):
            for pod in replica.pods:
                held[pod.node] += pod.gpus
        assert all(each.total >= held[each.name] for each in self.nodes), (
            "two revisions hold more than is there"
        )
        return tuple(replace(each, free=each.total - held[each.name]) for each in self.nodes)

    def step(self) -> ModelPlan:
        """What retires stops at once; what is new stands, and serves after that."""
        answer = self.plan()
        gone = {replica.index for replica in answer.retire}
        outgoing = tuple(each for each in self.wish.outgoing if each.index not in gone)
        serving = sum(each.index not in self.wish.idle for each in outgoing)
        self.served.append(self.wish.ready + serving)
        self.wish = replace(
            self.wish,
            outgoing=outgoing,
            outgoing_ready=serving,
            standing=answer.replicas,
            ready=len(answer.replicas),
        )
        return answer


def begun(replicas: int, old=(1, 1), new=(1, 1), on=(4,)) -> Course:
    """A model whose replicas fill the nodes with layout `old` and that now asks for `new`."""
    nodes = tuple(node(f"node-{i}", size, size) for i, size in enumerate(on))
    before = measured("m", old, replicas=replicas)
    standing = plan([before], replace(fleet(), nodes=nodes)).models[0].replicas
    return Course(serving(replace(measured("m", new, replicas=replicas), standing=standing)), nodes)


def test_on_a_full_cluster_one_replica_at_a_time_gives_way():
    course = begun(replicas=4)
    steps = []
    while course.wish.outgoing:
        steps.append(len(course.step().retire))
    assert steps == [1, 1, 1, 1]
    assert course.served == [3, 3, 3, 3]


def test_the_next_waits_until_the_new_one_serves():
    course = begun(replicas=3, on=(3,))
    first = course.step()
    starting = replace(course.wish, ready=0)
    course.wish = starting
    again = course.plan()
    assert (len(first.retire), again.retire) == (1, ())
    assert len(again.replicas) == 1
    assert again.refusal is not None
    assert (again.refusal.reason, again.refusal.waits) == ("RollingOut", False)
    assert again.refusal.message == (
        "2 replicas of the new revision take the place of old ones, which serve on 2 GPUs until then: the "
        "next goes when the new ones that are starting are Ready."
    )


def test_what_fits_beside_the_old_ones_starts_together_with_the_one_in_place():
    course = begun(replicas=4, on=(4, 2))
    answer = course.step()
    assert (len(answer.replicas), len(answer.retire)) == (3, 1)


def test_old_replicas_that_do_not_serve_all_give_way_at_once():
    course = begun(replicas=4)
    course.wish = replace(course.wish, idle=frozenset({0, 1, 2}), outgoing_ready=1)
    answer = course.step()
    assert {replica.index for replica in answer.retire} == {0, 1, 2}
    assert len(answer.replicas) == 3


def test_one_that_does_not_serve_leaves_no_other_to_spare():
    course = begun(replicas=3, on=(3,))
    course.wish = replace(course.wish, idle=frozenset({0}), outgoing_ready=2)
    assert [replica.index for replica in course.step().retire] == [0]


def test_a_larger_new_replica_takes_several_old_ones_and_only_one_of_it_starts():
    course = begun(replicas=2, old=(1, 2), new=(1, 4), on=(4,))
    assert len(course.step().retire) == 2
    course = begun(replicas=4, old=(1, 2), new=(1, 4), on=(8, 8))
    course.wish = replace(course.wish, replicas=4)
    course.nodes = tuple(replace(each, total=4, free=4) for each in course.nodes[:2])
    course.wish = replace(course.wish, outgoing=begun(4, (1, 2), on=(4, 4)).wish.outgoing)
    answer = course.step()
    assert (len(answer.replicas), len(answer.retire)) == (1, 2)


def test_a_promise_takes_no_replica_that_is_missed_since():
    course = begun(replicas=3, on=(3,))
    promised = course.plan().replicas
    crashed = replace(course.wish, promised=promised, idle=frozenset({0}), outgoing_ready=2)
    answer = plan([crashed], replace(fleet(), nodes=course._left())).models[0]
    assert [replica.index for replica in answer.retire] == [0]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    replicas=st.integers(1, 6),
    old=st.sampled_from(PP),
    new=st.sampled_from(PP),
    on=st.lists(st.sampled_from([4, 8]), min_size=1, max_size=4),
)
def test_every_rollout_ends_or_waits_for_gpus_and_serves_meanwhile(replicas, old, new, on):
    course = begun(replicas, old, new, tuple(on))
    assume(len(course.wish.outgoing) == replicas)
    size = old[0] * old[1]
    fewer_at_once = new[0] * new[1] <= size and new[0] <= old[0]
    for _ in range(4 * replicas + 4):
        before = (course.wish.standing, course.wish.outgoing, course.wish.ready)
        answer = course.step()
        if (course.wish.standing, course.wish.outgoing, course.wish.ready) == before:
            break
    ends = len(course.wish.standing) == replicas and not course.wish.outgoing
    assert ends or (answer.refusal is not None and answer.refusal.gpus_short > 0)
    if fewer_at_once:
        assert ends
        assert min(course.served) >= replicas - 1
