"""Pools that overlap: a model that may go anywhere leaves the only nodes of another to it."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.plan import overlap
from bowsprit.plan.fleet import Fleet, Taint, Toleration
from bowsprit.plan.planner import plan
from bowsprit.plan.wish import Accelerator
from tests.unit.plan.examples import measured, node, used

IN_X = Accelerator(node_selector=(("pool", "x"),))
TOLERANT = Accelerator(tolerations=(Toleration("team", "Exists"),))
RED = (Taint("team", "red", "NoSchedule"),)


def placed(wishes, on):
    return {model.key.name for model in plan(wishes, on).models if model.placed}


@pytest.mark.parametrize(
    ("anywhere", "nodes"),
    [
        ((1, 1), [node("a", 1, 1, labels={"pool": "x"}), node("b", 1, 1)]),
        ((1, 3), [node("a", 4, 4, labels={"pool": "x"}), node("b", 4, 4)]),
        ((2, 2), [node("a", 4, 4, labels={"pool": "x"}), node("b", 2, 4), node("c", 3, 4)]),
    ],
    ids=["one GPU each", "three GPUs each", "a larger one in two pieces"],
)
def test_a_selector_gets_its_only_nodes(anywhere, nodes):
    wishes = [
        measured("anywhere", anywhere),
        measured("only-x", (1, 3 if len(nodes) > 2 else 1), accelerator=IN_X),
    ]
    assert placed(wishes, Fleet(tuple(nodes))) == {"anywhere", "only-x"}


def test_a_problem_too_large_to_count_by_kind_still_leaves_the_only_nodes(monkeypatch):
    monkeypatch.setattr(overlap, "MAX_COLUMNS", 0)
    on = Fleet((node("a", 4, 4, labels={"pool": "x"}), node("b", 4, 4)))
    assert placed([measured("anywhere", (1, 3)), measured("only-x", (1, 3), accelerator=IN_X)], on) == {
        "anywhere",
        "only-x",
    }


def test_a_model_that_tolerates_a_taint_leaves_the_untainted_nodes_to_others():
    on = Fleet((node("a", 4, 4), node("b", 4, 4, taints=RED)))
    wishes = [measured("tolerant", (4, 1), accelerator=TOLERANT), measured("plain", (4, 1))]
    assert placed(wishes, on) == {"tolerant", "plain"}


def test_a_higher_priority_still_goes_first():
    on = Fleet((node("a", 1, 1, labels={"pool": "x"}), node("b", 1, 1, taints=RED)))
    wishes = [measured("high", (1, 1), priority=1), measured("only-x", (1, 1), accelerator=IN_X)]
    assert placed(wishes, on) == {"high"}


def most(allowed, free):
    """Most models with one pod each, by trying everything: `allowed` is (GPUs, nodes) of each model."""

    @cache
    def best(index, left):
        if index == len(allowed):
            return 0
        gpus, nodes = allowed[index]
        takes = (
            1 + best(index + 1, (*left[:at], left[at] - gpus, *left[at + 1 :]))
            for at in nodes
            if left[at] >= gpus
        )
        return max([best(index + 1, left), *takes])

    return best(0, free)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([None, "x", "y"]), st.booleans()),
        min_size=1,
        max_size=5,
    ),
)
def test_as_many_models_are_served_as_can_be(shapes, asked):
    nodes = [
        node(f"n{i}", free, 4, labels={"pool": pool}, taints=RED if red else ())
        for i, (free, pool, red) in enumerate(shapes)
    ]
    wishes = [
        measured(
            f"m{i}",
            (gpus, 1),
            accelerator=Accelerator(
                node_selector=(("pool", pool),) if pool else (),
                tolerations=TOLERANT.tolerations if tolerant else (),
            ),
        )
        for i, (gpus, pool, tolerant) in enumerate(asked)
    ]
    allowed = tuple(
        (
            gpus,
            tuple(i for i, (_, where, red) in enumerate(shapes) if pool in (None, where) and red <= tolerant),
        )
        for gpus, pool, tolerant in asked
    )
    on = Fleet(tuple(nodes))
    answer = plan(wishes, on)
    assert all(used(answer)[each.name] <= each.free for each in nodes)
    assert sum(model.placed for model in answer.models) == most(allowed, tuple(free for free, _, _ in shapes))
