"""Models on CPUs: how many pods, and what goes first; the nodes are kube-scheduler's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.key import ModelKey
from bowsprit.plan.planner import plan
from bowsprit.plan.result import CPU, Layout, ModelPlan, PodPlan, ReplicaPlan
from bowsprit.plan.wish import Accelerator, ExplicitLayout, Wish
from tests.unit.render.examples import FACTS

KEY = ModelKey("team", "tiny")
ONE = Layout(CPU, tensor=1, pipeline=1, gpus_per_pod=1, layer_partition=(80,))


def wish(replicas: int = 1, **changes: Any) -> Wish:
    return replace(Wish(KEY, "t", replicas, FACTS, accelerator=Accelerator(resource=CPU)), **changes)


def planned(asked: Wish) -> ModelPlan:
    return plan([asked], Fleet(())).by_key[KEY]


def standing(index: int, node: str = "n1") -> ReplicaPlan:
    return ReplicaPlan(index, ONE, (PodPlan(node, 1),))


def test_replicas_are_planned_without_nodes_and_hold_no_gpus() -> None:
    done = planned(wish(2))
    assert [replica.index for replica in done.replicas] == [0, 1]
    assert {replica.layout for replica in done.replicas} == {ONE}
    assert {pod.node for replica in done.replicas for pod in replica.pods} == {""}
    assert ONE.gpus == 0
    assert done.refusal is None


def test_each_stage_is_a_pod() -> None:
    (replica,) = planned(wish(explicit=ExplicitLayout(pipeline=3))).replicas
    assert (replica.layout.pods, replica.layout.layer_partition) == (3, (27, 27, 26))
    assert len(replica.pods) == 3


def test_a_partition_of_the_users_own_is_kept() -> None:
    (replica,) = planned(wish(explicit=ExplicitLayout(layer_partition=(50, 30)))).replicas
    assert replica.layout.layer_partition == (50, 30)


def test_what_stands_stays_and_a_surplus_retires() -> None:
    done = planned(wish(1, standing=(standing(1), standing(0))))
    assert (done.replicas, done.retire) == ((standing(0),), (standing(1),))


def test_planning_again_with_the_answer_changes_nothing() -> None:
    once = planned(wish(2))
    again = planned(wish(2, promised=once.replicas))
    assert again == once


ROLLOUTS: dict[str, tuple[RolloutMode, int, int]] = {
    "Auto: the old one goes first, for nobody knows whether there is room": (RolloutMode.AUTO, 0, 1),
    "Recreate": (RolloutMode.RECREATE, 0, 1),
    "Surge: the old one stays until the new one serves": (RolloutMode.SURGE, 0, 0),
    "Surge, and the new one serves": (RolloutMode.SURGE, 1, 1),
}


@pytest.mark.parametrize("case", ROLLOUTS)
def test_rollout(case: str) -> None:
    mode, ready, retired = ROLLOUTS[case]
    stands = (standing(1),) if ready else ()
    done = planned(wish(1, rollout=mode, outgoing=(standing(0),), standing=stands, ready=ready))
    assert len(done.retire) == retired
    assert len(done.replicas) == 1


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "more stages than layers": ({"explicit": ExplicitLayout(pipeline=81)}, "LayoutRefused"),
    "stages of a class that has none": (
        {"explicit": ExplicitLayout(pipeline=2), "facts": replace(FACTS, stageable=False)},
        "LayoutRefused",
    ),
    "several pods without LeaderWorkerSet": (
        {"explicit": ExplicitLayout(pipeline=2), "one_pod_only": True},
        "LeaderWorkerSetNotInstalled",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_what_runs_left_alone(case: str) -> None:
    changes, reason = REFUSED[case]
    done = planned(wish(1, outgoing=(standing(0),), **changes))
    assert done.refusal is not None
    assert (done.refusal.reason, done.replicas, done.retire) == (reason, (), ())


def test_models_on_gpus_are_planned_beside_them() -> None:
    other = replace(wish(), key=ModelKey("team", "big"), accelerator=Accelerator())
    done = plan([wish(), other], Fleet(()))
    assert [model.key.name for model in done.models] == ["big", "tiny"]
    assert done.by_key[KEY].placed
    assert not done.by_key[other.key].placed
