"""Placements that fail after they were planned: planned again, elsewhere, and nothing is over-committed."""

from __future__ import annotations

import pytest

from bowsprit.controller.placement import REST_START_S
from tests.integration.arena import PCIE, Arena
from tests.integration.faults import (
    bound_gpus,
    event_time,
    foreign_pod,
    messages,
    patch_status,
    promised_nodes,
    refuse,
    remove_foreign,
    start_time,
    stopped,
    wait_event,
)
from tests.integration.life import TWO_PODS, fetch, uids
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration


def test_a_gpu_that_is_taken_before_the_pin_is_planned_elsewhere(arena: Arena) -> None:
    nodes = arena.nodes(2, gpus=1)
    operator = arena.operator()
    with stopped(arena, "kube-controller-manager"):
        # The replica is promised a node and has no pod yet.
        arena.model("late")
        arena.wait("the promise", lambda: bool(promised_nodes(arena, "late")))
        (promised,) = promised_nodes(arena, "late")
        operator.pause()
        foreign_pod(arena, "faster", promised)
        operator.resume()
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 1)).watching():
        arena.wait_ready("late")
        assert arena.nodes_of("late").keys() == set(nodes) - {promised}


def test_a_gpu_that_is_taken_after_the_pin_costs_the_pod_and_its_node_rests(arena: Arena) -> None:
    nodes = arena.nodes(2, gpus=1)
    arena.operator()
    with stopped(arena, "kube-scheduler"):
        arena.model("pinned")
        arena.wait("the pin", lambda: _lifted(arena, "pinned") == 1)
        (promised,) = promised_nodes(arena, "pinned")
        foreign_pod(arena, "faster", promised)
    message = wait_event(arena, "pinned", "BindFailed")
    assert "Replica 0: 0 of 1 pod bound; Unschedulable: " in message
    assert message.endswith("It is removed whole and planned again.")
    arena.wait_ready("pinned")
    assert arena.nodes_of("pinned").keys() == set(nodes) - {promised}
    assert bound_gpus(arena) == dict.fromkeys(nodes, 1)

    # Free again, and not used again at once: the second replica waits until the node has had its rest.
    failed = event_time(arena, "pinned", "BindFailed")
    remove_foreign(arena, "faster")
    arena.patch("pinned", {"replicas": 2})
    arena.wait("both replicas", lambda: bound_gpus(arena) == dict.fromkeys(nodes, 1))
    arena.wait_ready("pinned")
    (back,) = [pod for pod in arena.pods("pinned") if _node(pod) == promised]
    assert start_time(back) - failed >= REST_START_S - 1


def test_one_rank_without_its_gpu_costs_the_whole_group(arena: Arena) -> None:
    nodes = arena.nodes(3, gpus=1)
    arena.operator()
    with stopped(arena, "kube-scheduler"):
        arena.model("group", **TWO_PODS)
        arena.wait("both pins", lambda: _lifted(arena, "group") == 2)
        before, taken = uids(arena, "group"), promised_nodes(arena, "group")[1]
        foreign_pod(arena, "faster", taken)
    wait_event(arena, "group", "BindFailed")
    arena.wait_ready("group")
    assert arena.nodes_of("group").keys() == set(nodes) - {taken}
    assert not uids(arena, "group") & before
    assert bound_gpus(arena) == dict.fromkeys(nodes, 1)


def test_a_pod_that_the_kubelet_refuses_is_removed_and_planned_elsewhere(arena: Arena) -> None:
    nodes = arena.nodes(2, gpus=1)
    arena.operator()
    arena.model("refused")
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 1)).watching():
        arena.wait_ready("refused")
        (pod,) = arena.pods("refused")
        refuse(arena, pod)
        message = wait_event(arena, "refused", "BindFailed")
        assert "UnexpectedAdmissionError: Allocate failed" in message
        arena.wait("another node", lambda: set(arena.nodes_of("refused")) == set(nodes) - {_node(pod)})
        arena.wait_ready("refused")
        arena.wait("the failed pod to be gone", lambda: pod["metadata"]["uid"] not in uids(arena, "refused"))


def test_a_rank_that_the_kubelet_refuses_costs_the_whole_group_and_no_other(arena: Arena) -> None:
    nodes = arena.nodes(3, gpus=3)
    arena.operator()
    arena.model("neighbour")
    arena.model("group", replicas=2, **TWO_PODS)
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 3)).watching():
        arena.wait_ready("neighbour", "group")
        assert len(arena.pods("group")) == 4
        kept = uids(arena, "neighbour")
        broken = next(pod for pod in arena.pods("group") if _index(pod) == ("1", "1"))
        others = {pod["metadata"]["uid"] for pod in arena.pods("group") if _index(pod)[0] == "0"}
        doomed = uids(arena, "group") - others
        refuse(arena, broken)
        wait_event(arena, "group", "BindFailed")
        arena.wait("the group to be replaced", lambda: not uids(arena, "group") & doomed)
        arena.wait_ready("group", seconds=90)
        assert others <= uids(arena, "group")
        assert uids(arena, "neighbour") == kept


def test_finished_pods_of_others_hold_nothing_and_free_is_never_below_zero(arena: Arena) -> None:
    product = f"{PCIE}-{arena.namespace}"
    (node,) = arena.nodes(1, gpus=4, product=product)
    for name, phase in (("done", "Succeeded"), ("dead", "Failed")):
        foreign_pod(arena, name, node, gpus=4)
        arena.wait("the pod to run", lambda: all(_phase(pod) != "Pending" for pod in arena.pods()))
        patch_status(arena, "pod", name, {"phase": phase})
    foreign_pod(arena, "alive", node, gpus=2)
    operator = arena.operator()
    gpus = f'bowsprit_gpus{{product="{product}",state="free"}}'
    arena.model("first")
    arena.wait_ready("first")
    arena.wait("1 GPU to be free", lambda: f"{gpus} 1.0" in fetch(operator, "/metrics")[1])

    # Three of the four GPUs fall ill under running pods, and more than is left is held.
    patch_status(arena, "node", node, {"allocatable": {"nvidia.com/gpu": "1"}})
    arena.model("second")
    arena.wait_reason("second", "GPUsReserved", "WaitingForGPUs")
    arena.wait("no GPU to be free", lambda: f"{gpus} 0.0" in fetch(operator, "/metrics")[1])
    assert bound_gpus(arena) == {node: 3}
    assert not messages(arena, "first", "BindFailed")

    patch_status(arena, "node", node, {"allocatable": {"nvidia.com/gpu": "4"}})
    arena.wait_ready("first", "second")
    assert bound_gpus(arena) == {node: 4}


def _lifted(arena: Arena, model: str) -> int:
    return sum(1 for pod in arena.pods(model) if not pod["spec"].get("schedulingGates"))


def _node(pod: dict) -> str:
    return str(pod["spec"]["nodeName"])


def _phase(pod: dict) -> str:
    return str(pod["status"].get("phase"))


def _index(pod: dict) -> tuple[str, str]:
    labels = pod["metadata"]["labels"]
    prefix = "leaderworkerset.sigs.k8s.io"
    return str(labels[f"{prefix}/group-index"]), str(labels[f"{prefix}/worker-index"])
