"""What is left of a node beside its GPUs: allocatable less what every pod there asks for."""

from __future__ import annotations

from typing import Any

import pytest

from bowsprit.api.pod_requests import amount
from bowsprit.inventory.ledger import GpuLedger, fleet
from bowsprit.inventory.nodes import node_facts
from bowsprit.inventory.pods import pod_facts
from bowsprit.inventory.products import ProductTable
from tests.unit.inventory.objects import node, pod

GIB = 2**30
OFFERS = {"memory": "512Gi", "ephemeral-storage": "100Gi", "pods": "110", "rdma/hca": "4"}


def asking(name: str, spec: dict[str, Any] | None = None, **resources: str) -> dict[str, Any]:
    raw = pod(name, gpus=0)
    raw["spec"]["containers"] = [{"name": "main", "resources": {"requests": resources}}]
    raw["spec"] |= spec or {}
    return raw


def room(*pods: dict[str, Any]) -> dict[str, int]:
    [found] = fleet([node_facts(node(others=OFFERS))], map(pod_facts, pods), ProductTable()).nodes
    return dict(found.room)


CASES: dict[str, tuple[list[dict[str, Any]], dict[str, int]]] = {
    "nothing there": (
        [],
        {"cpu": 64_000, "memory": 512 * GIB, "pods": 110, "rdma/hca": 4, "nvidia.com/gpu": 8},
    ),
    "pods without GPUs count": (
        [asking("a", cpu="500m"), asking("b", cpu="2")],
        {"cpu": 61_500, "pods": 108},
    ),
    "pods with GPUs count too": ([pod("a", gpus=6)], {"pods": 109, "nvidia.com/gpu": 2}),
    "finished pods do not": (
        [asking("a", cpu="60") | {"status": {"phase": "Failed"}}],
        {"cpu": 64_000, "pods": 110},
    ),
    "pods elsewhere do not": ([asking("a", {"nodeName": "n2"}, cpu="60")], {"cpu": 64_000, "pods": 110}),
    "more than there is": ([asking("a", cpu="65")], {"cpu": -1000}),
    "sidecars, init containers and overhead": (
        [
            asking(
                "a",
                {
                    "initContainers": [
                        {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                        {"resources": {"requests": {"memory": "100Gi"}}},
                    ],
                    "overhead": {"cpu": "250m"},
                },
                cpu="2",
            )
        ],
        {"cpu": 60_750, "memory": 411 * GIB},
    ),
    "a limit alone": (
        [asking("a", {"containers": [{"resources": {"limits": {"rdma/hca": 1}}}]})],
        {"rdma/hca": 3},
    ),
    "a host port": ([asking("a", {"containers": [{"ports": [{"hostPort": 80}]}]})], {"host port TCP/80": 0}),
    "the host's network": (
        [
            asking(
                "a",
                {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 53, "protocol": "UDP"}]}]},
            )
        ],
        {"host port UDP/53": 0},
    ),
    "garbage": (
        [asking("a", {"containers": [7, {"resources": {"requests": {"cpu": "much"}}, "ports": 3}]})],
        {"cpu": 64_000},
    ),
}


@pytest.mark.parametrize(("pods", "left"), CASES.values(), ids=CASES)
def test_room(pods: list[dict[str, Any]], left: dict[str, int]) -> None:
    assert room(*pods).items() >= left.items()


def test_a_pod_of_ours_takes_room_from_the_moment_it_is_pinned() -> None:
    pinned = pod(node=None, pinned="n1", phase="Pending", labels={"bowsprit.dev/model": "m"})
    assert room(pinned)["pods"] == 109


def test_room_comes_back_with_the_pod() -> None:
    ledger = GpuLedger(ProductTable())
    ledger.upsert_node(node_facts(node(others=OFFERS)))
    ledger.upsert_pod(pod_facts(asking("a", cpu="60")))
    assert ledger.fleet().nodes[0].room["cpu"] == 4000
    ledger.remove_pod("team", "a")
    assert ledger.fleet().nodes[0].room["cpu"] == 64_000


@pytest.mark.parametrize(
    ("resource", "quantity", "units"),
    [
        ("cpu", "100m", 100),
        ("cpu", "0.5", 500),
        ("cpu", 2, 2000),
        ("cpu", "1u", 1),
        ("memory", "1Gi", GIB),
        ("memory", "1e9", 10**9),
        ("memory", "1.5k", 1500),
        ("memory", "128974848", 128974848),
        ("memory", "500m", 1),
        ("memory", "-1", None),
        ("memory", "1 Gi", None),
        ("memory", "", None),
        ("memory", None, None),
        ("memory", True, None),
        ("memory", "9" * 30, None),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them_and_rounded_up(resource, quantity, units) -> None:
    assert amount(resource, quantity) == units
