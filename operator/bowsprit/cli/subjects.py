"""Which model `explain` and `map` are about: from a plan on files, or from what the operator wrote into
status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bowsprit.cli.explanation import Subject
from bowsprit.cli.live import LiveCluster
from bowsprit.cli.planning import Answer
from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.plan.fleet import Holder
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ReplicaPlan
from bowsprit.status.replicas import replicas_from_status

_HOW_TO_NAME = "give the name alone, its namespace with -n"


def planned_subject(answer: Answer, namespace: str, name: str) -> Subject:
    key = ModelKey(namespace, name)
    for model in answer.models:
        if model.key == key:
            return Subject(key, model.status, answer.fleet, _holders(answer, key))
    raise _not_found(key, (model.key for model in answer.models), "the given files")


def live_subject(live: LiveCluster, namespace: str, name: str) -> Subject:
    key = ModelKey(namespace, name)
    found = live.deployments.get(key)
    if found is None:
        raise _not_found(key, live.deployments, "the live cluster")
    fleet = live.inventory.fleet
    return Subject(key, found.get("status") or {}, fleet, fleet.holders)


def recorded_replicas(live: LiveCluster) -> Mapping[ModelKey, Sequence[ReplicaPlan]]:
    """What status says of each model, for the legend of the map."""
    return {
        key: [each.replica for each in replicas_from_status(deployment.get("status"))]
        for key, deployment in live.deployments.items()
    }


def _holders(answer: Answer, key: ModelKey) -> tuple[Holder, ...]:
    """What pods hold, and what the plan gives to the other models; the largest first."""
    planned = [
        Holder(str(model.key), replica.layout.product, replica.layout.gpus)
        for model in answer.models
        if model.plan and model.key != key
        for replica in model.plan.replicas
    ]
    return tuple(sorted((*answer.fleet.holders, *planned), key=lambda each: (-each.gpus, each.who)))


def _not_found(key: ModelKey, known: Iterable[ModelKey], where: str) -> BadInput:
    names = ", ".join(str(each) for each in sorted(known)) or "none"
    return BadInput(
        [Problem(Place(where), "", f"no ModelDeployment {key}; there are: {names}; {_HOW_TO_NAME}")]
    )
