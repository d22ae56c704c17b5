"""Wire objects as the API server gives them, cut down to what an inventory is read from."""

from __future__ import annotations

from typing import Any

GFD = "nvidia.com/gpu"


def node(
    name: str = "n1",
    gpus: object = 8,
    *,
    capacity: object = None,
    resource: str = GFD,
    product: str | None = "NVIDIA-H100-80GB-HBM3",
    memory: str | None = "81559",
    labels: dict[str, Any] | None = None,
    others: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
    ready: str = "True",
) -> dict[str, Any]:
    """A node with GPU Feature Discovery's labels unless `product` is None."""
    read = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    if product is not None:
        read |= {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus)}
    if memory is not None:
        read |= {"nvidia.com/gpu.memory": memory}
    offered = {} if gpus is None else {resource: str(gpus)}
    most = {} if gpus is None else {resource: str(gpus if capacity is None else capacity)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": read | (labels or {}), "annotations": annotations or {}},
        "spec": {"taints": taints or [], "unschedulable": unschedulable},
        "status": {
            "capacity": {"cpu": "64"} | most | (others or {}),
            "allocatable": {"cpu": "64"} | offered | (others or {}),
            "conditions": [{"type": "Ready", "status": ready}],
            "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"},
        },
    }


def pod(
    name: str = "p1",
    gpus: int = 1,
    *,
    namespace: str = "team",
    node: str | None = "n1",
    pinned: str | None = None,
    phase: str = "Running",
    labels: dict[str, str] | None = None,
    terminating: bool = False,
) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"limits": {GFD: str(gpus)}}}]}
    if node:
        spec["nodeName"] = node
    if pinned:
        spec["affinity"] = pin(pinned)
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "labels": labels or {},
    }
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def pin(*nodes: str) -> dict[str, Any]:
    """Required node affinity to one of these nodes, as placement and DaemonSets write it."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(nodes)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
