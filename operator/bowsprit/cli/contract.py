"""The JSON of `bowsprit plan -o json`. Scripts depend on it: no field is renamed or taken away.

    {"models": [{"namespace", "name", "placed", "reason", "message", "replicas": [{"index", "tensor",
"pipeline", "layerPartition", "gpusPerPod", "pods": [{"node", "gpus"}], "stages": [{"layers", "weightsGiB",
"kvGiB", "otherGiB", "capacityGiB"}], "why"}]}], "gpus": {"total", "used", "free"}}
"""

from __future__ import annotations

from typing import Any

from bowsprit.cli.planning import Answer, ModelAnswer
from bowsprit.plan.result import ReplicaPlan
from bowsprit.status.replicas import stage_to_status

ALL_PLACED = 0
NOT_ALL_PLACED = 3


def exit_code(answer: Answer) -> int:
    return ALL_PLACED if answer.placed else NOT_ALL_PLACED


def plan_data(answer: Answer) -> dict[str, Any]:
    return {"models": [_model(model) for model in answer.models], "gpus": gpu_totals(answer)}


def gpu_totals(answer: Answer) -> dict[str, int]:
    """GPUs that replicas may use, and those that pods hold on nodes that take no more; `used` as planned."""
    fleet = answer.fleet
    total = sum(node.total for node in fleet.nodes) + sum(left.held for left in fleet.left_out)
    new = sum(replica.layout.gpus for model in answer.models if model.plan for replica in model.plan.replicas)
    free = sum(node.free for node in fleet.nodes) - new
    return {"total": total, "used": total - free, "free": free}


def _model(model: ModelAnswer) -> dict[str, Any]:
    verdict = model.verdict
    return {
        "namespace": model.key.namespace,
        "name": model.key.name,
        "placed": model.placed,
        "reason": str(verdict.reason),
        "message": verdict.message,
        "replicas": [_replica(replica) for replica in (model.plan.replicas if model.plan else ())],
    }


def _replica(replica: ReplicaPlan) -> dict[str, Any]:
    layout = replica.layout
    return {
        "index": replica.index,
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "layerPartition": list(layout.layer_partition),
        "gpusPerPod": layout.gpus_per_pod,
        "pods": [{"node": pod.node, "gpus": pod.gpus} for pod in replica.pods],
        "stages": [stage_to_status(stage) for stage in replica.stages],
        "why": replica.why,
    }
