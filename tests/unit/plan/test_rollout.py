"""Surplus, old revisions, and the GPUs that come back from a model's own pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan.planner import plan
from bowsprit.plan.result import CPU, Layout, PodPlan, ReplicaPlan
from tests.unit.plan.examples import fleet, layouts, measured, stood


def old(name: str, on, *rows, replicas=1, **more):
    """A wish whose replicas all stand on an old revision, and the fleet that is left."""
    before = [measured(name, *rows, replicas=replicas, **more)]
    (after,), left = stood(before, on, plan(before, on))
    return replace(after, standing=(), outgoing=after.standing), left


def indexes(replicas):
    return [replica.index for replica in replicas]


def test_a_surplus_retires_the_highest_indexes():
    wishes, left = stood([w := measured("m", (1, 1), replicas=3)], on := fleet(8), plan([w], on))
    model = plan([replace(wishes[0], replicas=1)], left).models[0]
    assert (indexes(model.replicas), indexes(model.retire)) == ([0], [1, 2])


def test_a_suspended_model_retires_all_and_lacks_nothing():
    wishes, left = stood([w := measured("m", (1, 1), replicas=2)], on := fleet(8), plan([w], on))
    model = plan([replace(wishes[0], replicas=0)], left).models[0]
    assert model.placed
    assert (model.replicas, indexes(model.retire), model.refusal) == ((), [0, 1], None)


@pytest.mark.parametrize("mode", [RolloutMode.AUTO, RolloutMode.SURGE])
def test_a_new_revision_is_planned_beside_the_old_one_where_there_is_room(mode):
    wish, left = old("m", fleet(4, 4), (4, 1), rollout=mode)
    model = plan([wish], left).models[0]
    assert (len(model.replicas), model.retire) == (1, ())
    assert model.replicas[0].pods[0].node != wish.outgoing[0].pods[0].node
    assert model.replicas[0].index not in indexes(wish.outgoing)


def test_without_room_auto_takes_the_place_of_as_few_old_replicas_as_will_do():
    wish, left = old("m", fleet(4, 4), (4, 1), replicas=2)
    model = plan([replace(wish, replicas=1)], left).models[0]
    assert indexes(model.retire) == [1], "one is surplus, and its GPUs are enough"
    assert [pod.node for pod in model.replicas[0].pods] == ["b"]


def test_without_room_surge_waits_and_says_so():
    wish, left = old("m", fleet(4), (4, 1), rollout=RolloutMode.SURGE)
    model = plan([wish], left).models[0]
    assert (model.replicas, model.retire) == ((), ())
    assert "Surge" in model.refusal.message


def test_recreate_retires_all_old_replicas_first():
    wish, left = old("m", fleet(4, 4), (4, 1), rollout=RolloutMode.RECREATE)
    model = plan([wish], left).models[0]
    assert (len(model.replicas), indexes(model.retire)) == (1, [0])


def test_recreate_keeps_the_old_replicas_when_the_new_revision_can_never_fit():
    wish, left = old("m", fleet(4), (4, 1), rollout=RolloutMode.RECREATE)
    model = plan([replace(wish, measured={wish.outgoing[0].layout.product: ()})], left).models[0]
    assert (model.refusal.reason, model.refusal.waits, model.retire) == ("ModelDoesNotFit", False, ())


def test_old_replicas_retire_as_new_ones_get_ready():
    wish, left = old("m", fleet(8, 8), (1, 1), replicas=2)
    new = plan([wish], left).models[0].replicas
    free = tuple(
        replace(node, free=node.free - 2) if node.name == new[0].pods[0].node else node for node in left.nodes
    )
    started = replace(wish, standing=new)
    retired = [
        len(plan([replace(started, ready=ready)], replace(left, nodes=free)).models[0].retire)
        for ready in (0, 1, 2)
    ]
    assert retired == [0, 1, 2]


def test_gpus_of_leaving_pods_are_planned_for_their_own_model_only():
    wish, left = old("m", fleet(4), (4, 1))
    gone = replace(wish, outgoing=(), leaving=wish.outgoing)
    answer = plan([gone, measured("other", (4, 1), priority=10)], left)
    assert layouts(answer) == {"m": ["tp4/pp1"], "other": []}


def test_a_promise_on_gpus_that_are_leaving_is_kept_and_gives_up_the_same_old_replica_again():
    wish, left = old("m", fleet(4), (4, 1))
    first = plan([wish], left).models[0]
    again = plan([replace(wish, promised=first.replicas)], left).models[0]
    assert again.replicas[0] is first.replicas[0]
    assert again.retire == first.retire == wish.outgoing
    leaving = replace(wish, promised=first.replicas, outgoing=(), leaving=wish.outgoing)
    assert plan([leaving], left).models[0].replicas[0] is first.replicas[0]


def test_a_promise_whose_node_is_gone_is_planned_anew():
    wish = measured("m", (4, 1))
    first = plan([wish], fleet(4)).models[0].replicas
    on_b = replace(fleet(4, 4), nodes=fleet(4, 4).nodes[1:])
    assert [pod.node for pod in plan([replace(wish, promised=first)], on_b).models[0].replicas[0].pods] == [
        "b"
    ]


def test_a_rollout_of_higher_priority_takes_free_gpus_before_a_new_model_of_lower():
    wish, left = old("high", fleet(5), (1, 4), priority=10)
    bigger = replace(wish, measured=measured("high", (1, 5)).measured)
    answer = plan([bigger, measured("low", (1, 1))], left)
    assert layouts(answer) == {"high": ["tp1/pp5"], "low": []}
    assert len(answer.by_key[wish.key].retire) == 1


@pytest.mark.parametrize("state", ["outgoing", "leaving"])
def test_pods_that_run_on_cpus_give_no_gpus_back(state):
    on_cpus = Layout(CPU, tensor=1, pipeline=1, gpus_per_pod=1, layer_partition=(80,))
    old = ReplicaPlan(0, on_cpus, (PodPlan("a", 1),))
    wish = replace(measured("m", (1, 1)), **{state: (old,)})
    model = plan([wish], fleet(0, total=8)).models[0]
    assert (model.replicas, model.retire) == ((), ())
    assert model.refusal.reason == "InsufficientGPUs"
