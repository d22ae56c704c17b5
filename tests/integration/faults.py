"""Faults that tests inflict: pods of others, kubelets that refuse, silent nodes, programs that stop."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from e2e.cluster.nodes import gpu_node
from tests.integration.arena import PCIE, Arena, Json
from tests.integration.life import events
from tests.integration.referee import GPU, gpus_of

SILENT_S = 1
SHORT_PATIENCE = {
    "tolerations": [
        {
            "key": f"node.kubernetes.io/{state}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": SILENT_S,
        }
        for state in ("not-ready", "unreachable")
    ]
}
"""spec.template.spec of a model whose pods leave a silent node after a second, not after five minutes."""


def foreign_pod(arena: Arena, name: str, node: str = "", gpus: int = 1, **limits: str) -> None:
    """Somebody else's pod. With a node it is bound there at once, past the scheduler."""
    resources = {"limits": {GPU: str(gpus), **limits}}
    spec: Json = {"containers": [{"name": "main", "image": "none", "resources": resources}]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": arena.namespace}
    arena.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def remove_foreign(arena: Arena, name: str) -> None:
    arena.kubectl("delete", "pod", name, "--wait=false")


def patch_status(arena: Arena, kind: str, name: str, status: Json) -> None:
    """What a kubelet would write."""
    arena.kubectl("patch", kind, name, "--subresource=status", "-p", json.dumps({"status": status}))


def refuse(arena: Arena, pod: Json) -> None:
    """The kubelet refuses the pod: the GPU that the scheduler counted on is not there."""
    message = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"
    status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message}
    patch_status(arena, "pod", pod["metadata"]["name"], status)


def plain_node(arena: Arena, gpus: int = 1) -> str:
    """A node whose kubelet we play ourselves: it goes silent when we do."""
    (name,) = arena.new_names(1)
    labels = {"arena": arena.namespace}
    node = gpu_node(name, product=PCIE, memory_mib=81920, count=gpus, labels=labels)
    del node["metadata"]["annotations"]
    arena.cluster.api().create_all("/api/v1/nodes", [node])
    return name


def set_ready(arena: Arena, node: str, ready: bool) -> None:
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Test", "message": ""}
    patch_status(arena, "node", node, {"conditions": [condition]})


def run_pods(arena: Arena, node: str) -> None:
    """Starts what is bound to a plain node, as its kubelet would."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for pod in arena.pods():
        if pod["spec"].get("nodeName") == node and pod["status"]["phase"] == "Pending":
            name = pod["metadata"]["name"]
            patch_status(arena, "pod", name, {"phase": "Running", "conditions": [ready]})


@contextmanager
def stopped(arena: Arena, program: str) -> Iterator[None]:
    """A control-plane program is down."""
    arena.cluster.kill_program(program)
    try:
        yield
    finally:
        arena.cluster.start_program(program)


def wait_event(arena: Arena, model: str, reason: str) -> str:
    """The message of the first such event."""
    arena.wait(f"an event {reason} of {model}", lambda: bool(messages(arena, model, reason)))
    return messages(arena, model, reason)[0]


def messages(arena: Arena, model: str, reason: str) -> list[str]:
    return [str(event["message"]) for event in events(arena, model) if event["reason"] == reason]


def event_time(arena: Arena, model: str, reason: str) -> float:
    """When the first such event was told, in seconds since 1970."""
    found = next(event for event in events(arena, model) if event["reason"] == reason)
    return _seconds(found["firstTimestamp"])


def start_time(pod: Json) -> float:
    """When the pod was started on its node, in seconds since 1970."""
    return _seconds(pod["status"]["startTime"])


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def bound_gpus(arena: Arena) -> dict[str, int]:
    """GPUs by node of all pods that are bound and have not finished, whoever made them."""
    held: dict[str, int] = {}
    for pod in arena.pods():
        node = pod["spec"].get("nodeName")
        if node and pod["status"].get("phase") not in ("Failed", "Succeeded"):
            held[node] = held.get(node, 0) + gpus_of(pod)
    return held


def promised_nodes(arena: Arena, model: str) -> list[str]:
    """Nodes of the model's replicas, as the status promises them."""
    replicas = (arena.status(model).get("plan") or {}).get("replicas") or []
    return [str(pod["node"]) for replica in replicas for pod in replica["pods"]]


def eventually(arena: Arena, what: str, value: Callable[[], Any], expected: Any) -> None:
    arena.wait(f"{what} to be {expected}", lambda: bool(value() == expected))
