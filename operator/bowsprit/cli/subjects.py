"""Which model `explain` and `map` are about: from a plan on files, or from what the operator wrote into
status.
"""

from __future__ import annotations

from collections.abc import Iterable

from bowsprit.cli.explanation import Subject
from bowsprit.cli.gpumap import GpuMap, gpu_map, planned_map
from bowsprit.cli.live import LiveCluster
from bowsprit.cli.planning import Answer
from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.plan.fleet import Holder
from bowsprit.plan.key import ModelKey
from bowsprit.status.replicas import replicas_from_status

_HOW_TO_NAME = "give the name alone, its namespace with -n"


def planned_subject(answer: Answer, namespace: str, name: str) -> Subject:
    key = ModelKey(namespace, name)
    for model in answer.models:
        if model.key == key:
            return Subject(key, model.status, answer.fleet, _holders(answer, key))
    raise not_found(key, (model.key for model in answer.models), "the given files")


def live_subject(live: LiveCluster, namespace: str, name: str) -> Subject:
    key = ModelKey(namespace, name)
    found = live.deployments.get(key)
    if found is None:
        raise not_found(key, live.deployments, "the live cluster")
    fleet = live.inventory.fleet
    return Subject(key, found.get("status") or {}, fleet, fleet.holders)


def planned_gpus(answer: Answer) -> GpuMap:
    """The map of a plan on files."""
    planned = {model.key: model.plan.replicas for model in answer.models if model.plan}
    specs = {model.key: model.deployment.spec for model in answer.models if model.plan}
    idle = {key: _idle(spec.suspend, spec.replicas) for key, spec in specs.items()}
    return planned_map(answer.fleet, answer.inventory.pods, planned, idle)


def live_gpus(live: LiveCluster) -> GpuMap:
    """The map of the live cluster; its legend is what status says of each model."""
    recorded = {
        key: [each.replica for each in replicas_from_status(deployment.get("status"))]
        for key, deployment in live.deployments.items()
    }
    specs = {key: deployment["spec"] for key, deployment in live.deployments.items()}
    idle = {key: _idle(spec.get("suspend"), spec.get("replicas")) for key, spec in specs.items()}
    return gpu_map(live.inventory.fleet, live.inventory.pods, recorded, idle)


def _idle(suspend: bool | None, replicas: int | None) -> str:
    """Why a model without replicas has none."""
    if suspend:
        return "suspended"
    return "0 replicas" if replicas == 0 else "not placed"


def _holders(answer: Answer, key: ModelKey) -> tuple[Holder, ...]:
    """What pods hold, and what the plan gives to the other models; the largest first."""
    planned = [
        Holder(str(model.key), replica.layout.product, replica.layout.gpus)
        for model in answer.models
        if model.plan and model.key != key
        for replica in model.plan.replicas
    ]
    return tuple(sorted((*answer.fleet.holders, *planned), key=lambda each: (-each.gpus, each.who)))


def not_found(key: ModelKey, known: Iterable[ModelKey], where: str) -> BadInput:
    """That no model is called so, and which there are."""
    names = ", ".join(str(each) for each in sorted(known)) or "none"
    return BadInput(
        [Problem(Place(where), "", f"no ModelDeployment {key}; there are: {names}; {_HOW_TO_NAME}")]
    )
