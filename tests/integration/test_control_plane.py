"""The control plane that all other integration tests stand on: what it promises them, tried on itself."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.nodes import create_nodes, gpu_node, ready_nodes
from e2e.cluster.waiting import wait_until

pytestmark = pytest.mark.integration

GATE = "bowsprit.dev/placement"
NODES = ("control-a", "control-b")
TOLERATION = {"key": "test", "value": "control-plane", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def nodes(control_plane: ControlPlane) -> Iterator[tuple[str, ...]]:
    """Two nodes of 4 A100s, tainted so that no other test's pods come here."""
    a100 = functools.partial(gpu_node, product="NVIDIA-A100-SXM4-80GB", memory_mib=81920, count=4)
    create_nodes(control_plane.kubeconfig, [a100(name, taints=[TOLERATION]) for name in NODES])
    yield NODES
    control_plane.kubectl("delete", "node", *NODES)


@pytest.fixture
def pods(control_plane: ControlPlane, namespace: str) -> Callable[[], list[dict[str, Any]]]:
    """Reads the pods of the test's namespace, in the order of their names."""
    api = control_plane.api()

    def read() -> list[dict[str, Any]]:
        items = api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return sorted(items, key=lambda pod: str(pod["metadata"]["name"]))

    return read


def test_nodes_become_ready(control_plane: ControlPlane, nodes: tuple[str, ...]) -> None:
    assert set(nodes) <= ready_nodes(control_plane.api())


def test_server_tells_its_version(control_plane: ControlPlane) -> None:
    assert control_plane.api().get("/version")["gitVersion"].startswith("v1.34.")


@pytest.mark.usefixtures("nodes")
def test_pod_that_asks_for_gpus_runs_on_a_fake_node(
    control_plane: ControlPlane, namespace: str, pods: Callable[[], list[dict[str, Any]]]
) -> None:
    control_plane.apply(pod("plain", namespace))
    wait_until("the pod to run", lambda: pods()[0]["status"]["phase"] == "Running")
    assert pods()[0]["spec"]["nodeName"] in NODES


@pytest.mark.usefixtures("nodes")
def test_gated_pod_binds_to_the_node_that_the_lifted_gate_names(
    control_plane: ControlPlane, namespace: str, pods: Callable[[], list[dict[str, Any]]]
) -> None:
    control_plane.apply(deployment("gated", namespace))
    wait_until("a pod", lambda: len(pods()) == 1)
    wait_until("the pod to be gated", lambda: scheduling_reason(pods()[0]) == "SchedulingGated")

    patch = json.dumps(place_on("control-b"))
    name = pods()[0]["metadata"]["name"]
    control_plane.kubectl("patch", "pod", name, "-n", namespace, "--type=json", f"--patch={patch}")

    wait_until("the pod to run", lambda: pods()[0]["status"]["phase"] == "Running")
    assert pods()[0]["spec"]["nodeName"] == "control-b"


def test_group_has_all_its_pods_while_they_are_gated(
    control_plane: ControlPlane, namespace: str, pods: Callable[[], list[dict[str, Any]]]
) -> None:
    control_plane.apply(leader_worker_set("group", namespace, size=5))
    wait_until("five pods", lambda: len(pods()) == 5)
    wait_until("all to be gated", lambda: {scheduling_reason(p) for p in pods()} == {"SchedulingGated"})
    assert [p["metadata"]["name"] for p in pods()] == ["group-0", *(f"group-0-{i}" for i in range(1, 5))]


@pytest.mark.usefixtures("nodes")
def test_killed_api_server_comes_back_with_its_objects(
    control_plane: ControlPlane, namespace: str, pods: Callable[[], list[dict[str, Any]]]
) -> None:
    control_plane.kubectl("create", "configmap", "kept", "-n", namespace, "--from-literal=a=b")
    api = control_plane.api()
    control_plane.kill_program("kube-apiserver")
    assert not api.answers("/readyz")

    control_plane.start_program("kube-apiserver")
    assert api.get(f"/api/v1/namespaces/{namespace}/configmaps/kept")["data"] == {"a": "b"}

    control_plane.apply(pod("later", namespace))
    wait_until("the other programs to work on", lambda: pods()[0]["status"]["phase"] == "Running")


def test_second_control_plane_runs_beside_the_first_and_gets_lws_later(control_plane: ControlPlane) -> None:
    with ControlPlane(lws=False) as second:
        groups = "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"
        assert second.server != control_plane.server
        assert not second.api().answers(groups)

        second.install_lws()
        second.apply(leader_worker_set("group", "default", size=2))
        assert len(second.api().get(groups)["items"]) == 1
    assert control_plane.api().answers("/readyz")


def scheduling_reason(manifest: dict[str, Any]) -> str | None:
    """Why a pod is not scheduled, in the scheduler's word."""
    conditions = manifest["status"].get("conditions", [])
    return next((c.get("reason") for c in conditions if c["type"] == "PodScheduled"), None)


def pod(name: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec()}


def deployment(name: str, namespace: str) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(gated=True)},
        },
    }


def leader_worker_set(name: str, namespace: str, *, size: int) -> dict[str, Any]:
    template = {"spec": pod_spec(gated=True)}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {"size": size, "leaderTemplate": template, "workerTemplate": template},
        },
    }


def pod_spec(*, gated: bool = False) -> dict[str, Any]:
    container = {"name": "engine", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    gates = {"schedulingGates": [{"name": GATE}]} if gated else {}
    return {"containers": [container], "tolerations": [TOLERATION], **gates}


def place_on(node: str) -> list[dict[str, Any]]:
    """The patch that pins a gated pod to a node and lifts its gate."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    return [
        {"op": "add", "path": "/spec/affinity", "value": affinity},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]
