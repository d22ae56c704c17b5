"""What pods need beside GPUs: no node is given more than it has, and what is lacking is said with numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.needs import left
from bowsprit.plan.planner import plan
from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan
from bowsprit.plan.wish import ExplicitLayout
from tests.unit.plan.examples import PCIE, SXM, layouts, measured, node, promised
from tests.unit.plan.test_invariants import ROWS, some

OFFERS = {"cpu": 64_000, "memory": 512 * 2**30, "pods": 110}


def roomy(name: str, free: int = 8, *, offers=OFFERS, **more):
    """A node with so much left of each thing; all of it unless said."""
    room = {**offers, **{key.replace("_", "-"): value for key, value in more.items()}}
    return node(name, free, offers=offers, room=room)


def cpus(number: float, *others):
    return tuple(sorted([("cpu", int(1000 * number)), ("pods", 1), *others]))


def nodes_of(answer, name="m"):
    model = next(model for model in answer.models if model.key.name == name)
    return [[pod.node for pod in replica.pods] for replica in model.replicas]


CASES = {
    "a node without CPU is passed over": (
        [roomy("a", cpu=3200), roomy("b", free=4)],
        measured("m", (1, 1), needs=cpus(8)),
        [["b"]],
    ),
    "a node that takes no more pods is passed over": (
        [roomy("a", pods=0), roomy("b")],
        measured("m", (1, 1), needs=cpus(1)),
        [["b"]],
    ),
    "a host port is there once": (
        [roomy("a"), roomy("b", **{"host port TCP/8000": 0}), roomy("c")],
        measured("m", (1, 1), replicas=3, needs=cpus(1, ("host port TCP/8000", 1))),
        [["a"], ["c"]],
    ),
    "an extended resource that only some nodes have": (
        [roomy("a"), roomy("b", offers={**OFFERS, "rdma/hca": 2})],
        measured("m", (1, 1), replicas=3, needs=cpus(1, ("rdma/hca", 1))),
        [["b"], ["b"]],
    ),
    "stages on one node share a pod, and ask once": (
        [roomy("a")],
        measured("m", (1, 4), needs=cpus(60)),
        [["a"]],
    ),
    "the same over nodes that are alike": (
        [roomy("a", free=4), roomy("b", free=4), roomy("c", free=4)],
        measured("m", (1, 12), needs=cpus(60)),
        [["a", "b", "c"]],
    ),
    "fewer GPUs of a node where its rest could not be used": (
        [roomy("a", free=6), roomy("b", free=4), roomy("c", free=4)],
        measured("m", (1, 12), needs=cpus(40)),
        [["a", "b", "c"]],
    ),
    "pods of a size that the user fixed ask each": (
        [roomy("a"), roomy("b")],
        measured("m", (1, 4), needs=cpus(30), explicit=ExplicitLayout(gpus_per_pod=1)),
        [["a", "a", "b", "b"]],
    ),
    "a node that was written by hand is not bound": (
        [node("a")],
        measured("m", (1, 1), needs=cpus(1000, ("memory", 2**50))),
        [["a"]],
    ),
}


@pytest.mark.parametrize(("on", "wish", "nodes"), CASES.values(), ids=CASES)
def test_pods_go_where_there_is_room_for_them(on, wish, nodes):
    answer = plan([wish], Fleet(tuple(on)))
    assert nodes_of(answer) == nodes
    assert answer.models[0].placed or answer.models[0].refusal.reason == "InsufficientNodeResources"


def test_where_everything_fits_the_plan_is_the_one_without_needs():
    fleet = Fleet((roomy("a", free=3), roomy("b", free=5), roomy("c", free=4)))
    wishes = [measured("three", (1, 3)), measured("five", (1, 5)), measured("four", (1, 4), (4, 1))]
    small = [replace(each, needs=cpus(4, ("memory", 2**34))) for each in wishes]
    assert plan(small, fleet) == plan(wishes, fleet)


def test_the_lack_is_told_by_node_with_numbers_and_waits():
    fleet = Fleet((roomy("a", cpu=3200), roomy("b", free=2, memory=2**30, pods=0)))
    wish = measured("m", (1, 1), needs=cpus(16, ("memory", 64 * 2**30)))
    refusal = plan([wish], fleet).models[0].refusal
    assert (refusal.reason, refusal.waits, refusal.gpus_short) == ("InsufficientNodeResources", True, 0)
    assert "16 CPUs, 64 GiB of memory" in refusal.message
    assert "node a (8 GPUs free) has 3.2 of 64 CPUs free" in refusal.message
    assert "node b (2 GPUs free) has 1 of 512 GiB of memory free, 0 of 110 pods free" in refusal.message


def test_nodes_that_are_too_small_for_a_pod_are_no_nodes_for_the_model():
    refusal = plan([measured("m", (1, 1), needs=cpus(96))], Fleet((roomy("a"),))).models[0].refusal
    assert (refusal.reason, refusal.waits) == ("NoMatchingNodes", True)
    assert "1 node: too small for a pod, which asks for 96 CPUs (64 of 64 CPUs free)" in refusal.message


def test_too_few_gpus_tell_of_those_that_no_pod_can_use():
    fleet = Fleet((roomy("a", free=2), roomy("b", free=1, cpu=0)))
    refusal = plan([measured("m", (4, 1), needs=cpus(8))], fleet).models[0].refusal
    assert (refusal.reason, refusal.gpus_short) == ("InsufficientGPUs", 2)
    assert "GPUs of some nodes" not in refusal.message, "b has too few GPUs for a pod in any case"
    fleet = Fleet((roomy("a", free=2), roomy("b", free=4, cpu=0)))
    refusal = plan([measured("m", (4, 2), needs=cpus(8))], fleet).models[0].refusal
    assert (refusal.reason, refusal.gpus_short) == ("InsufficientGPUs", 2)
    assert (
        "of no use to a pod, which asks for 8 CPUs besides: node b (4 GPUs free) has 0 of 64"
        in refusal.message
    )


def test_a_promise_is_given_up_when_its_room_is_gone():
    wish = measured("m", (1, 1), needs=cpus(8))
    (owed,) = promised([wish], plan([wish], Fleet((roomy("a"),))))
    answer = plan([owed], Fleet((roomy("a", cpu=0), roomy("b"))))
    assert nodes_of(answer) == [["b"]]


OLD = ReplicaPlan(0, Layout(PCIE, 1, 8, 8, ()), (PodPlan("a", 8, cpus(60)),))


@pytest.mark.parametrize("mode", [RolloutMode.AUTO, RolloutMode.RECREATE])
def test_a_new_revision_takes_the_room_of_the_old_one(mode):
    on = Fleet((roomy("a", free=0, cpu=4000),))
    wish = measured("m", (1, 8), needs=cpus(60), outgoing=(OLD,), rollout=mode)
    answer = plan([wish], on).models[0]
    assert [[pod.node for pod in replica.pods] for replica in answer.replicas] == [["a"]]
    assert answer.retire == (OLD,)


def test_a_new_revision_that_needs_more_than_the_old_one_gives_back_does_not():
    on = Fleet((roomy("a", free=0, cpu=2000),))
    wish = measured("m", (1, 8), needs=cpus(64), outgoing=(OLD,), rollout=RolloutMode.AUTO)
    answer = plan([wish], on).models[0]
    assert (answer.replicas, answer.retire) == ((), ())
    assert answer.refusal is not None


NEEDS = st.sampled_from([(), cpus(1), cpus(7), cpus(16), cpus(30, ("host port TCP/1", 1)), cpus(60)])


@st.composite
def crowded(draw):
    """Wishes and nodes where CPU, pods and ports bind."""
    nodes = tuple(
        replace(
            roomy(f"node-{i}", draw(st.integers(0, 8)), cpu=draw(st.integers(0, 64)) * 1000,
                  pods=draw(st.integers(0, 6))),
            product=draw(st.sampled_from([PCIE, SXM])),
        )
        for i in range(draw(st.integers(1, 5)))
    )  # fmt: skip
    wishes = [
        measured(
            f"model-{i}",
            *draw(ROWS),
            replicas=draw(st.integers(0, 3)),
            priority=draw(st.sampled_from([0, 10])),
            product=draw(st.sampled_from([PCIE, SXM])),
            needs=draw(NEEDS),
            explicit=draw(st.sampled_from([ExplicitLayout(), ExplicitLayout(tensor=1, gpus_per_pod=1)])),
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    return wishes, Fleet(nodes)


@some
@given(crowded())
def test_no_node_is_given_more_than_it_has(case):
    wishes, fleet = case
    answer = plan(wishes, fleet)
    taken: Counter[tuple[str, str]] = Counter()
    for wish in wishes:
        for replica in answer.by_key[wish.key].replicas:
            for pod in replica.pods:
                taken[pod.node, "GPUs"] += pod.gpus
                taken.update({(pod.node, resource): amount for resource, amount in wish.needs})
    by_name = {each.name: each for each in fleet.nodes}
    for (name, resource), amount in taken.items():
        there = by_name[name].free if resource == "GPUs" else left(by_name[name].room, resource)
        assert amount <= there
    for model in answer.models:
        assert model.placed or any(letter.isdigit() for letter in model.refusal.message)
    again = plan(promised(wishes, answer), fleet)
    assert layouts(again) == layouts(answer)


@some
@given(crowded())
def test_one_model_alone_is_placed_whenever_some_split_has_room(case):
    """Against all sizes of pods, each node with as many as it has room for."""
    (wish, *_), fleet = case
    wish = replace(wish, replicas=1)
    answer = plan([wish], fleet)
    product, rows = next(iter(wish.measured.items()))
    fixed = wish.explicit.gpus_per_pod
    fits = False
    for row in rows if fixed is None else [row for row in rows if row.tensor == 1]:
        gpus = row.tensor * row.min_pipeline
        for size in (
            [fixed] if fixed else [s for s in range(row.tensor, gpus + 1, row.tensor) if gpus % s == 0]
        ):
            pods = sum(
                min([each.free // size, *(left(each.room, what) // amount for what, amount in wish.needs)])
                for each in fleet.nodes
                if each.product == product
            )
            fits = fits or pods * size >= gpus
    assert answer.models[0].placed == fits
