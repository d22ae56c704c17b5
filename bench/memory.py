"""Resident memory of the operator: 5,000 nodes of 8 GPUs, 20,000 pods of others, 1,000 ModelDeployments.

Half of the pods hold GPUs, all are bound and about as large as pods of a real cluster. Measured after the
models have been placed and all is quiet, and, for what a start costs, after a restart. Target: under 400 MiB.
"""

from __future__ import annotations

from typing import Any

from bench.figure import Figure
from bench.observe import settled
from bench.stage import FAST_FLAGS, NAMESPACE, Stage, a100_node, config_map, model, stage

NODES = 5000
PODS = 20000
MODELS = 1000
QUIET_S = 15.0
CONTROLLERS = ("serviceaccount-controller", "deployment-controller", "replicaset-controller")
"""Those that models need. The others would mind nodes that nobody plays, and keep two processors busy."""


def measure() -> list[Figure]:
    manager = [*FAST_FLAGS["kube-controller-manager"], f"--controllers={','.join(CONTROLLERS)}"]
    with stage({**FAST_FLAGS, "kube-controller-manager": manager}) as on:
        _populate(on)
        pods = on.pods()
        with on.operator() as operator:
            pods.wait(MODELS)
            audit = on.audit()
            settled("the writes", lambda: audit.work().total(), QUIET_S)
            placing = operator.memory_mib("VmRSS"), operator.memory_mib("VmHWM")
        with on.operator() as operator:
            audit = on.audit()
            settled("the writes", lambda: audit.work().total(), QUIET_S)
            restarted = operator.memory_mib("VmRSS"), operator.memory_mib("VmHWM")
    now = max(placing[0], restarted[0])
    what = f"resident memory with {NODES:,} nodes, {PODS:,} pods and {MODELS:,} models"
    return [
        Figure(what, now, "MiB", "under 400 MiB", now < 400, f"{restarted[0]:.0f} MiB after a restart"),
        Figure(
            "most while placing all of them",
            placing[1],
            "MiB",
            "",
            None,
            f"{restarted[1]:.0f} MiB at a start",
        ),
    ]


def _populate(on: Stage) -> None:
    """Nodes without KWOK's annotation: nobody plays their kubelets, so pods stay as they were created."""
    nodes = [a100_node(f"bench-{index}") for index in range(NODES)]
    for node in nodes:
        del node["metadata"]["annotations"]
    on.create_nodes(nodes)
    names = [f"model-{index:04d}" for index in range(MODELS)]
    on.create("api/v1/configmaps", [config_map(name) for name in names])
    on.create("apis/bowsprit.dev/v1alpha1/modeldeployments", [model(name) for name in names])
    on.create("api/v1/pods", [_pod(index) for index in range(PODS)])


def _pod(index: int) -> dict[str, Any]:
    """Somebody else's pod, as charts write them; every second one holds a GPU."""
    name = f"other-{index:05d}"
    resources: dict[str, Any] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}
    if index % 2:
        resources["limits"]["nvidia.com/gpu"] = "1"
    labels = {f"app.kubernetes.io/{key}": name for key in ("name", "instance", "component", "part-of")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {"checksum/config": name * 6},
        },
        "spec": {
            "nodeName": f"bench-{index % NODES}",
            "containers": [
                {
                    "name": part,
                    "image": f"registry.example/team/{part}:1.2.3",
                    "env": [{"name": f"SETTING_{number}", "value": name} for number in range(12)],
                    "resources": resources if part == "main" else {},
                    "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
                }
                for part in ("main", "sidecar")
            ],
            "volumes": [{"name": "config", "configMap": {"name": "shared"}}],
        },
    }
