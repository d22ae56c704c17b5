"""Nodes that die, go silent, come back or are closed: replicas on them move whole, and no others."""

from __future__ import annotations

import pytest

from tests.integration.arena import Arena
from tests.integration.faults import (
    SHORT_PATIENCE,
    bound_gpus,
    messages,
    plain_node,
    run_pods,
    set_ready,
    wait_event,
)
from tests.integration.life import TWO_PODS, uids
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration


def test_a_deleted_node_costs_its_replicas_whole_and_its_return_starts_what_waits(arena: Arena) -> None:
    nodes = arena.nodes(3, gpus=2)
    arena.operator()
    arena.model("group", parallelism={"pipeline": 3, "gpusPerPod": 1})
    arena.wait_ready("group")
    arena.model("single", replicas=3)
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 2)).watching():
        arena.wait_ready("group", "single")
        lost = next(node for node, gpus in arena.nodes_of("group").items() if gpus == 1)
        doomed = uids(arena, "group")
        kept = {pod["metadata"]["uid"] for pod in arena.pods("single") if pod["spec"]["nodeName"] != lost}
        assert len(kept) == 2

        arena.delete_node(lost)
        wait_event(arena, "group", "NodeLost")
        # Four GPUs are left and two of them are held by replicas that nothing has happened to.
        arena.wait_reason("group", "GPUsReserved", "WaitingForGPUs")
        arena.wait("no pod on the lost node", lambda: not _on(arena, lost))
        assert kept <= uids(arena, "single")

        arena.restore_node(lost, gpus=2)
        arena.wait_ready("group", "single")
        assert not uids(arena, "group") & doomed
        assert kept <= uids(arena, "single")
        assert bound_gpus(arena) == dict.fromkeys(nodes, 2)


def test_pods_of_a_silent_node_are_forced_off_it_and_it_is_used_again_when_it_is_back(arena: Arena) -> None:
    (steady,) = arena.nodes(1, gpus=1)
    arena.operator()
    arena.model("neighbour")
    arena.wait_ready("neighbour")
    silent = plain_node(arena)
    arena.model("moves", template={"spec": SHORT_PATIENCE})
    arena.wait("a pod on the silent node", lambda: len(_on(arena, silent)) == 1)
    run_pods(arena, silent)
    arena.wait_ready("moves")
    kept, doomed = uids(arena, "neighbour"), uids(arena, "moves")

    set_ready(arena, silent, False)
    # Nobody on that node ever confirms the deletion.
    arena.wait("the pod to be gone", lambda: not doomed & _all_uids(arena))
    waiting = arena.wait_reason("moves", "GPUsReserved", "WaitingForGPUs")
    assert f"{silent} (NotReady" in waiting["message"]
    assert uids(arena, "neighbour") == kept

    (spare,) = arena.nodes(1, gpus=1)
    arena.wait_ready("moves")
    assert set(arena.nodes_of("moves")) == {spare}

    set_ready(arena, silent, True)
    arena.patch("moves", {"replicas": 2})
    arena.wait("a pod on the node that is back", lambda: len(_on(arena, silent)) == 1)
    run_pods(arena, silent)
    arena.wait_ready("moves", "neighbour")
    assert bound_gpus(arena) == {steady: 1, spare: 1, silent: 1}
    assert uids(arena, "neighbour") == kept


def test_a_rank_on_a_silent_node_costs_the_whole_group(arena: Arena) -> None:
    (steady,) = arena.nodes(1, gpus=1)
    silent = plain_node(arena)
    arena.operator()
    arena.model("group", template={"spec": SHORT_PATIENCE}, **TWO_PODS)
    arena.wait("a rank on the silent node", lambda: len(_on(arena, silent)) == 1)
    run_pods(arena, silent)
    arena.wait_ready("group")
    doomed = uids(arena, "group")
    (spare,) = arena.nodes(1, gpus=1)

    set_ready(arena, silent, False)
    arena.wait("every rank to be gone", lambda: not doomed & _all_uids(arena))
    arena.wait_ready("group")
    assert arena.nodes_of("group").keys() == {steady, spare}


CLOSED = {
    "cordoned": (["cordon", "{}"], ["uncordon", "{}"]),
    "tainted": (["taint", "node", "{}", "team=other:NoSchedule"], ["taint", "node", "{}", "team-"]),
}


@pytest.mark.parametrize(("close", "open_"), CLOSED.values(), ids=CLOSED)
def test_a_closed_node_keeps_what_runs_and_gets_nothing_new(
    arena: Arena, close: list[str], open_: list[str]
) -> None:
    (node,) = arena.nodes(1, gpus=2)
    arena.operator()
    arena.model("runs")
    arena.wait_ready("runs")
    kept = uids(arena, "runs")
    arena.cluster.kubectl(*(word.format(node) for word in close))
    arena.model("new")
    arena.wait_reason("new", "Planned", "NoMatchingNodes")
    assert uids(arena, "runs") == kept
    assert not messages(arena, "runs", "NodeLost")

    arena.cluster.kubectl(*(word.format(node) for word in open_))
    arena.wait_ready("new", "runs")
    assert uids(arena, "runs") == kept


def _on(arena: Arena, node: str) -> list[dict]:
    return [pod for pod in arena.pods() if pod["spec"].get("nodeName") == node]


def _all_uids(arena: Arena) -> set[str]:
    """Of all pods, those on their way out too."""
    items = arena.api.get(f"/api/v1/namespaces/{arena.namespace}/pods")["items"]
    return {pod["metadata"]["uid"] for pod in items}
