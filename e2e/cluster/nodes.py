"""Fake GPU nodes: Node objects that look to Kubernetes, and to Bowsprit, as the GPU operator leaves real
ones.

KWOK keeps them Ready and runs their pods in name only, so a fleet of thousands fits on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from e2e.cluster.api import Api
from e2e.cluster.waiting import wait_until

# The annotation by which KWOK knows the nodes that it plays.
FAKE_NODE = ("kwok.x-k8s.io/node", "fake")
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played by KWOK"}
CONNECTIONS = 8

# For thousands of nodes: what each says every ten seconds to stay Ready would keep this machine busy.
FLEET_FLAGS: Mapping[str, Sequence[str]] = {
    "kwok": ["--node-lease-duration-seconds=1200"],
    "kube-controller-manager": ["--node-monitor-grace-period=1200s"],
}


def gpu_node(
    name: str,
    *,
    product: str,
    memory_mib: int,
    count: int,
    resource: str = "nvidia.com/gpu",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """A node with `count` GPUs of one product. `labels` add to those of the GPU's vendor, or replace them."""
    vendor = _VENDOR_LABELS.get(resource, _no_labels)
    return _node(
        name, {resource: str(count)}, {**vendor(product, memory_mib, count), **(labels or {})}, taints
    )


def cpu_node(name: str, *, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A node without GPUs."""
    return _node(name, {}, labels or {}, ())


def as_fake(node: Mapping[str, Any]) -> dict[str, Any]:
    """A Node from elsewhere, for instance recorded on a real cluster, made one that KWOK plays."""
    metadata = dict(node["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), **dict([FAKE_NODE])}
    return {**node, "metadata": metadata}


def create_nodes(kubeconfig: Path, nodes: Sequence[dict[str, Any]], *, ready_seconds: float = 60.0) -> None:
    """Creates the nodes and returns when all of them are Ready."""
    api, names = Api(kubeconfig), {node["metadata"]["name"] for node in nodes}
    shares = [nodes[start::CONNECTIONS] for start in range(CONNECTIONS)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for created in [pool.submit(api.create_all, "/api/v1/nodes", share) for share in shares]:
            created.result()
    wait_until(f"{len(nodes)} nodes to be Ready", lambda: names <= ready_nodes(api), ready_seconds)


def ready_nodes(api: Api) -> set[str]:
    """The names of the nodes that are Ready."""
    return {node["metadata"]["name"] for node in api.get("/api/v1/nodes")["items"] if _is_ready(node)}


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _node(
    name: str,
    devices: Mapping[str, str],
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
) -> dict[str, Any]:
    capacity = {"cpu": "128", "memory": "1Ti", "pods": "110", "ephemeral-storage": "2Ti", **devices}
    own_labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own_labels, **labels}},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": capacity, "allocatable": dict(capacity), "conditions": [READY]},
    }
    return as_fake(node)


def _nvidia_labels(product: str, memory_mib: int, count: int) -> dict[str, str]:
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": "1",
    }


def _amd_labels(product: str, memory_mib: int, count: int) -> dict[str, str]:
    """AMD's labeller rounds memory to GiB and does not count."""
    return {
        "amd.com/gpu.family": "AI",
        "amd.com/gpu.product-name": product,
        "amd.com/gpu.vram": f"{round(memory_mib / 1024)}G",
    }


def _no_labels(product: str, memory_mib: int, count: int) -> dict[str, str]:
    """Of a vendor whose labels nobody here knows; the caller gives them."""
    return {}


_VENDOR_LABELS: Mapping[str, Callable[[str, int, int], dict[str, str]]] = {
    "nvidia.com/gpu": _nvidia_labels,
    "amd.com/gpu": _amd_labels,
}
