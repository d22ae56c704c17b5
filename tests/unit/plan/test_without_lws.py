"""Without LeaderWorkerSet: one-pod layouts where there are any, and no GPU kept for what cannot start."""

from __future__ import annotations

import pytest

from bowsprit.plan.planner import plan
from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan
from bowsprit.plan.wish import Demand, ExplicitLayout
from tests.unit.plan.examples import LLAMA_8B, LLAMA_70B, PCIE, fleet, wish

IN_THREE = Layout(PCIE, tensor=1, pipeline=3, gpus_per_pod=1, layer_partition=(27, 27, 26))
SEVERAL_PODS = ExplicitLayout(tensor=1, gpus_per_pod=1)
PROMISED = ReplicaPlan(0, IN_THREE, (PodPlan("a", 1),) * 3)


def big(**changes):
    """Llama-3.1-70B: three GPUs."""
    return wish("big", LLAMA_70B, demand=Demand(65536), **changes)


def test_it_is_planned_as_one_pod_where_a_node_can_hold_it() -> None:
    (with_lws,) = plan([big()], fleet(2, 2, 2, total=4)).models[0].replicas
    (without,) = plan([big(one_pod_only=True)], fleet(2, 2, 3, total=4)).models[0].replicas
    assert (with_lws.layout.pods, with_lws.layout.gpus) == (3, 3)
    assert (without.layout.pods, without.layout.gpus) == (1, 3)


def test_it_waits_for_gpus_while_no_node_has_enough_of_them_free() -> None:
    answer = plan([big(one_pod_only=True)], fleet(2, 2, 2, total=4)).models[0]
    assert answer.refusal is not None
    assert (answer.refusal.reason, answer.refusal.waits) == ("GPUsFragmented", True)


def test_where_no_node_is_large_enough_the_cure_is_to_install_it() -> None:
    answer = plan([big(one_pod_only=True)], fleet(2, 2, 2)).models[0]
    assert answer.replicas == ()
    assert answer.position is None
    assert answer.refusal is not None
    assert (answer.refusal.reason, answer.refusal.gpus_wanted, answer.refusal.waits) == (
        "LeaderWorkerSetNotInstalled",
        3,
        False,
    )
    assert "3 GPUs of A100-80GB-PCIe in 3 pods (tp=1, pp=3)" in answer.refusal.message
    assert "Install it" in answer.refusal.message
    assert "gpusPerPod" not in answer.refusal.message


def test_the_users_own_pods_are_kept_and_the_message_says_what_else_would_help() -> None:
    answer = plan([big(one_pod_only=True, explicit=SEVERAL_PODS)], fleet(8)).models[0]
    assert answer.refusal is not None
    assert answer.refusal.reason == "LeaderWorkerSetNotInstalled"
    assert "set spec.parallelism.gpusPerPod to 3" in answer.refusal.message


@pytest.mark.parametrize("installed", [True, False], ids=["with", "without"])
def test_its_gpus_go_to_others_only_while_it_cannot_start(installed: bool) -> None:
    several = big(one_pod_only=not installed, explicit=SEVERAL_PODS, promised=(PROMISED,))
    small = wish("small", LLAMA_8B, demand=Demand(8192), replicas=3)
    models = {model.key.name: model for model in plan([several, small], fleet(3)).models}
    assert len(models["big"].replicas) == (1 if installed else 0)
    assert len(models["small"].replicas) == (0 if installed else 3)


def test_what_stands_stays() -> None:
    standing = big(one_pod_only=True, standing=(PROMISED,))
    assert plan([standing], fleet(0)).models[0].replicas == (PROMISED,)
