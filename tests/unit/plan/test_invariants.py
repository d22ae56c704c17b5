"""What holds for every plan, on random wishes and fleets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.clusters import case
from bowsprit.plan.fleet import Fleet, Taint, Toleration
from bowsprit.plan.planner import plan
from bowsprit.plan.wish import Accelerator
from tests.unit.plan.examples import PCIE, SXM, measured, node, promised, stood, used

ROWS = st.sampled_from(
    [((1, 1),), ((1, 3),), ((1, 5),), ((1, 4), (2, 2), (4, 1)), ((2, 1),), ((1, 9), (4, 2)), ((8, 1),)]
)


@st.composite
def fleets(draw):
    sizes = draw(st.lists(st.tuples(st.integers(0, 8), st.sampled_from([PCIE, SXM])), min_size=1, max_size=6))
    return Fleet(tuple(node(f"node-{i}", free, 8, product) for i, (free, product) in enumerate(sizes)))


@st.composite
def wish_lists(draw):
    count = draw(st.integers(1, 5))
    return [
        measured(
            f"model-{i}",
            *draw(ROWS),
            replicas=draw(st.integers(0, 3)),
            priority=draw(st.sampled_from([0, 10])),
            product=draw(st.sampled_from([PCIE, SXM])),
        )
        for i in range(count)
    ]


some = settings(max_examples=40, deadline=None, derandomize=True)


@some
@given(wish_lists(), fleets())
def test_no_gpu_is_given_twice_and_every_replica_is_whole(wishes, fleet):
    answer = plan(wishes, fleet)
    free = {each.name: each.free for each in fleet.nodes}
    assert all(gpus <= free[name] for name, gpus in used(answer).items())
    products = {each.name: each.product for each in fleet.nodes}
    for model in answer.models:
        for replica in model.replicas:
            assert sum(pod.gpus for pod in replica.pods) == replica.layout.gpus
            assert {pod.gpus for pod in replica.pods} == {replica.layout.gpus_per_pod}
            assert replica.layout.gpus_per_pod % replica.layout.tensor == 0
            assert {products[pod.node] for pod in replica.pods} == {replica.layout.product}


@some
@given(wish_lists(), fleets(), st.randoms(use_true_random=False))
def test_the_order_of_wishes_and_nodes_does_not_matter(wishes, fleet, random):
    nodes = list(fleet.nodes)
    shuffled = list(wishes)
    random.shuffle(nodes)
    random.shuffle(shuffled)
    assert plan(shuffled, replace(fleet, nodes=tuple(nodes))) == plan(wishes, fleet)


@some
@given(wish_lists(), fleets())
def test_planning_again_with_the_promises_changes_nothing_and_keeps_the_objects(wishes, fleet):
    answer = plan(wishes, fleet)
    again = plan(promised(wishes, answer), fleet)
    assert [model.replicas for model in again.models] == [model.replicas for model in answer.models]
    for before, after in zip(answer.models, again.models, strict=True):
        assert all(one is other for one, other in zip(before.replicas, after.replicas, strict=True))


@some
@given(wish_lists(), fleets())
def test_what_stands_never_moves(wishes, fleet):
    answer = plan(wishes, fleet)
    again = plan(*stood(wishes, fleet, answer))
    assert [model.replicas for model in again.models] == [model.replicas for model in answer.models]
    assert not any(model.retire for model in again.models)


@some
@given(wish_lists(), fleets(), st.integers(0, 8))
def test_one_more_node_never_places_fewer_at_the_highest_priority(wishes, fleet, free):
    top = max(wish.priority for wish in wishes)
    keys = {wish.key for wish in wishes if wish.priority == top}

    def placed(on):
        return sum(
            len(model.replicas) for model in plan(wishes, on).models if model.key in keys and model.replicas
        )

    more = replace(fleet, nodes=(*fleet.nodes, node("node-more", free, 8)))
    served, served_more = (
        sum(bool(model.replicas) for model in plan(wishes, on).models if model.key in keys)
        for on in (fleet, more)
    )
    assert (served_more, placed(more)) >= (served, placed(fleet))


@some
@given(wish_lists(), fleets())
def test_every_model_that_is_not_placed_says_why_with_numbers(wishes, fleet):
    waiting = []
    for model in plan(wishes, fleet).models:
        if model.placed:
            assert model.refusal is None
            continue
        assert model.refusal is not None
        assert any(character.isdigit() for character in model.refusal.message)
        if model.refusal.reason in ("InsufficientGPUs", "GPUsFragmented"):
            assert model.refusal.gpus_short > 0
        if model.position is not None:
            waiting.append(model.position)
    assert sorted(waiting) == list(range(1, len(waiting) + 1))


@some
@given(st.integers(0, 10_000), st.data())
def test_overlapping_sets_of_nodes_and_odd_pod_sizes_stay_valid(number, data):
    """Selectors, taints and pods of three: what counting cannot decide exactly."""
    one = case(4 * number)
    nodes = tuple(
        replace(
            each,
            labels={"pool": data.draw(st.sampled_from("xy"))},
            taints=data.draw(st.sampled_from([(), (Taint("team", "red", "NoSchedule"),)])),
        )
        for each in one.fleet.nodes
    )
    tolerant = (Toleration("team", "Exists"),)
    wishes = [
        measured(
            f"model-{i}",
            *data.draw(st.sampled_from([((1, 3), (3, 1)), ((2, 2),), ((1, 2),), ((3, 2),)])),
            product=nodes[0].product,
            replicas=data.draw(st.integers(1, 2)),
            accelerator=Accelerator(
                node_selector=data.draw(st.sampled_from([(), (("pool", "x"),)])),
                tolerations=data.draw(st.sampled_from([(), tolerant])),
            ),
        )
        for i in range(4)
    ]
    answer = plan(wishes, Fleet(nodes))
    by_name = {each.name: each for each in nodes}
    held: Counter[str] = used(answer)
    assert all(gpus <= by_name[name].free for name, gpus in held.items())
    for wish in wishes:
        for replica in answer.by_key[wish.key].replicas:
            for pod in replica.pods:
                assert all(
                    by_name[pod.node].labels[key] == value for key, value in wish.accelerator.node_selector
                )
                assert not by_name[pod.node].taints or wish.accelerator.tolerations
