"""Pods that ask for more than was rendered: planned for as they are, never promised what they cannot have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.api.reasons import Reason
from bowsprit.controller import admitted
from bowsprit.controller.admitted import BELIEVED_S, Admitted
from bowsprit.inventory.pods import PodView
from bowsprit.plan.key import ModelKey
from bowsprit.plan.wish import Wish
from bowsprit.status.growth import Growth, More
from tests.unit.controller.objects import ranks
from tests.unit.controller.stage import A, Admission, Stage
from tests.unit.controller.test_steps import KEY, TARGET, frame

GPU = "nvidia.com/gpu"
NEEDS = (("cpu", 2000), ("pods", 1))
WISH = Wish(KEY, created="", replicas=1, facts=None, needs=NEEDS)
LARGER = (("cpu", 5000), ("pods", 1), ("rdma/hca", 1))


def waiting(**changes: Any) -> list[PodView]:
    """A group of three pods without nodes, the second of which is somehow changed."""
    first, second, third = (replace(each, needs=NEEDS) for each in ranks("", "", ""))
    return [first, replace(second, **changes), third]


def planned_for(admitted: Admitted, pods: Sequence[PodView], now: float = 0) -> dict[str, int]:
    return dict(admitted.meet(frame(pods), WISH, now).needs)


SEEN: dict[str, tuple[list[PodView], dict[str, int], tuple[More, ...]]] = {
    "nothing was added": (waiting(), {}, ()),
    "a pod asks for less": (waiting(needs=(("pods", 1),)), {}, ()),
    "a RuntimeClass or a sidecar has added to it": (
        waiting(needs=LARGER),
        {"cpu": 5000, "rdma/hca": 1},
        (More("cpu", 5000, 2000), More("rdma/hca", 1, 0)),
    ),
    "a LimitRange has given it GPUs": (waiting(gpus=((GPU, 8),)), {GPU: 8}, (More(GPU, 8, 1),)),
    "it stands already": (
        [replace(each, needs=LARGER) for each in ranks("n1", "n2", "n3")],
        {},
        (),
    ),
    "it is on its way out": (waiting(needs=LARGER, terminating=True), {}, ()),
    "it is of an older revision": (
        [replace(each, needs=LARGER) for each in ranks("", "", "", of="was")],
        {},
        (),
    ),
}


@pytest.mark.parametrize(("pods", "more", "told"), SEEN.values(), ids=SEEN)
def test_what_pods_show_while_they_wait_is_planned_for(
    pods: list[PodView], more: dict[str, int], told: tuple[More, ...]
) -> None:
    admitted = Admitted()
    assert planned_for(admitted, pods) == {**dict(NEEDS), **more}
    growth = admitted.told(frame(pods))
    assert growth == (Growth(pods[1].name, told) if told else None)


def test_it_is_believed_for_a_while_after_the_last_pod() -> None:
    admitted = Admitted()
    planned_for(admitted, waiting(needs=LARGER), now=10)
    assert planned_for(admitted, [], now=20) == dict(LARGER)
    assert admitted.told(frame([])) is not None
    assert admitted.next_wake(20) == BELIEVED_S - 10
    assert admitted.forget_old(BELIEVED_S + 9.9) == set()
    assert admitted.forget_old(BELIEVED_S + 10) == {KEY}
    assert planned_for(admitted, []) == dict(NEEDS)
    assert admitted.next_wake(20) is None


def test_pods_that_are_as_rendered_end_the_belief() -> None:
    admitted = Admitted()
    planned_for(admitted, waiting(needs=LARGER))
    assert planned_for(admitted, waiting()) == dict(NEEDS)
    assert planned_for(admitted, []) == dict(NEEDS)


def test_another_revision_may_be_admitted_otherwise() -> None:
    admitted = Admitted()
    planned_for(admitted, waiting(needs=LARGER))
    newer = frame(target=replace(TARGET, hash="newer"))
    assert dict(admitted.meet(newer, WISH, 0).needs) == dict(NEEDS)
    assert admitted.told(newer) is None


# ---- with the loop -----------------------------------------------------------------------------------------


def overhead(**amounts: str) -> Admission:
    """Of a RuntimeClass."""
    return lambda spec: {**spec, "overhead": {**spec.get("overhead", {}), **amounts}}


def given_gpus(gpus: int) -> Admission:
    """A LimitRange with a maximum gives as much to every container that says nothing itself."""

    def admit(spec: dict[str, Any]) -> dict[str, Any]:
        given = {"resources": {"limits": {GPU: str(gpus)}}}
        return {**spec, "initContainers": [{**each, **given} for each in spec["initContainers"]]}

    return admit


def condition(stage: Stage, kind: str, key: ModelKey = A) -> dict[str, Any]:
    return next(each for each in stage.notes.status[key]["conditions"] if each["type"] == kind)


async def test_larger_pods_go_where_there_is_room(stage: Stage) -> None:
    stage.node("n2", cpu="128")
    stage.admission[A] = overhead(cpu="100")
    stage.model("a")
    await stage.play()
    assert stage.held() == {A: "n2"}


async def test_larger_pods_wait_for_room_and_the_model_says_why(stage: Stage) -> None:
    stage.admission[A] = overhead(cpu="100")
    stage.model("a")
    await stage.play()
    assert stage.held() == {}
    planned = condition(stage, "Planned")
    assert planned["reason"] == Reason.NO_MATCHING_NODES
    assert (
        "asked for 102 CPUs instead of 2 CPUs: a webhook, a RuntimeClass or a LimitRange"
        in planned["message"]
    )
    assert "(64 of 64 CPUs free)" in planned["message"]
    assert "plan" not in stage.notes.status[A]

    stage.node("n2", cpu="128")
    await stage.play()
    assert stage.held() == {A: "n2"}


async def test_what_is_believed_is_tried_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admitted, "BELIEVED_S", 0.0)
    stage.admission[A] = overhead(cpu="100")
    stage.model("a")
    await stage.passes()
    stage.apply(A)
    await stage.passes()
    assert stage.pinned(A) == []
    del stage.admission[A]
    stage.node("n2", gpus=0)
    await stage.play()
    assert stage.held() == {A: "n1"}


async def test_pods_that_were_given_gpus_take_them_or_wait(stage: Stage) -> None:
    stage.admission[A] = given_gpus(8)
    stage.node("n2", gpus=4)
    stage.model("a")
    await stage.play()
    planned = condition(stage, "Planned")
    assert f"asked for 8 {GPU} instead of 1 {GPU}" in planned["message"]
    assert f"(4 of 4 {GPU} free)" in planned["message"]
    stage.node("n3", gpus=8)
    await stage.play()
    assert stage.held() == {A: "n3"}
    assert {each.name: each.free for each in stage.book.ledger.fleet().nodes}["n3"] == 0


NODES = st.lists(st.tuples(st.integers(1, 8), st.integers(4, 128)), min_size=1, max_size=4)
"""GPUs and CPUs."""
MODELS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 4]),
        st.one_of(
            st.just({}),
            st.builds(lambda cpu: {"cpu": cpu}, st.integers(1, 100)),
            st.builds(lambda gpus: {GPU: gpus}, st.integers(1, 8)),
        ),
    ),
    min_size=1,
    max_size=4,
)
"""Tensor size, and what admission adds."""


@given(nodes=NODES, models=MODELS)
@settings(max_examples=60, deadline=None)
async def test_no_promise_stays_that_cannot_be_kept_and_nothing_is_taken_twice(
    nodes: list[tuple[int, int]], models: list[tuple[int, dict[str, int]]]
) -> None:
    stage = Stage()
    for number, (gpus, cpus) in enumerate(nodes):
        stage.node(f"n{number}", gpus, cpu=str(cpus))
    for number, (tensor, added) in enumerate(models):
        stage.admission[ModelKey("team", f"m{number}")] = overhead(**{k: str(v) for k, v in added.items()})
        stage.model(f"m{number}", parallelism={"tensor": tensor, "pipeline": 1})
    await stage.play()

    used: Counter[str] = Counter()
    for pod_view in stage.book.pods:
        if pod_view.bound:
            used[pod_view.node] += sum(gpus for _, gpus in pod_view.gpus)
            used[f"{pod_view.node} cpu"] += dict(pod_view.needs)["cpu"]
    for number, (gpus, cpus) in enumerate(nodes):
        assert used[f"n{number}"] <= gpus
        assert used[f"n{number} cpu"] <= cpus * 1000
    for number in range(len(models)):
        key = ModelKey("team", f"m{number}")
        waits = condition(stage, "Planned", key)["status"] == "False"
        assert waits != (key in stage.held())
