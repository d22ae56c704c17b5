"""Replica plans as they stand in `status.plan`, and back.

The operator keeps no memory of its own: which replica was promised which nodes is written here, and the
next pass, or the next operator, reads it back. So everything that planning needs survives the round trip
exactly; the GiB of a stage are for people and are rounded. Reading is tolerant: an entry that is damaged
counts as never promised, and is planned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan, Stage
from bowsprit.status.text import cut

WHY_MAX = 4096
"""Characters of a replica's reasons that fit into the object."""


class RecordedReplica(NamedTuple):
    revision: str
    replica: ReplicaPlan


class DamagedError(ValueError):
    """An entry that no Bowsprit has written."""


def replica_to_status(replica: ReplicaPlan, revision: str) -> dict[str, Any]:
    """One entry of status.plan.replicas."""
    layout = replica.layout
    return {
        "index": replica.index,
        "revision": revision,
        "product": layout.product,
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "gpusPerPod": layout.gpus_per_pod,
        "layerPartition": list(layout.layer_partition),
        "pods": [{"node": pod.node, "gpus": pod.gpus} for pod in replica.pods],
        "stages": [stage_to_status(stage) for stage in replica.stages],
        "why": cut(replica.why, WHY_MAX),
    }


def stage_to_status(stage: Stage) -> dict[str, Any]:
    return {
        "layers": stage.layers,
        "weightsGiB": round(stage.weights_gib, 2),
        "kvGiB": round(stage.kv_gib, 2),
        "otherGiB": round(stage.other_gib, 2),
        "capacityGiB": round(stage.capacity_gib, 2),
    }


def replicas_from_status(status: Mapping[str, Any] | None) -> tuple[RecordedReplica, ...]:
    """Every readable entry of status.plan.replicas, in the order written; damaged ones are left out."""
    plan = (status or {}).get("plan")
    entries = plan.get("replicas") if isinstance(plan, Mapping) else None
    return tuple(_readable(entries if isinstance(entries, list) else []))


def _readable(entries: Iterable[Any]) -> Iterable[RecordedReplica]:
    for entry in entries:
        try:
            yield _replica(_mapping(entry))
        except DamagedError:
            continue


def _replica(entry: Mapping[str, Any]) -> RecordedReplica:
    layout = Layout(
        product=_text(entry, "product"),
        tensor=_whole(entry, "tensor", least=1),
        pipeline=_whole(entry, "pipeline", least=1),
        gpus_per_pod=_whole(entry, "gpusPerPod", least=1),
        layer_partition=tuple(_whole({"": layers}, "", least=0) for layers in _list(entry, "layerPartition")),
    )
    pods = tuple(
        PodPlan(_text(pod, "node"), _whole(pod, "gpus", least=1))
        for pod in map(_mapping, _list(entry, "pods"))
    )
    stages = tuple(_stage(_mapping(stage)) for stage in _list(entry, "stages"))
    uniform = all(pod.gpus == layout.gpus_per_pod for pod in pods)
    if not uniform or len(pods) != layout.pods or layout.ranks % layout.gpus_per_pod:
        raise DamagedError("the pods do not add up to the layout")
    why = entry.get("why", "")
    replica = ReplicaPlan(
        _whole(entry, "index", least=0), layout, pods, stages, why if isinstance(why, str) else ""
    )
    return RecordedReplica(_text(entry, "revision"), replica)


def _stage(entry: Mapping[str, Any]) -> Stage:
    return Stage(
        _whole(entry, "layers", least=0),
        *(_number(entry, name) for name in ("weightsGiB", "kvGiB", "otherGiB", "capacityGiB")),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DamagedError(f"not an object: {value!r}")
    return value


def _list(entry: Mapping[str, Any], name: str) -> list[Any]:
    """Absent reads as empty: the API server drops nothing, but people edit."""
    value = entry.get(name, [])
    if not isinstance(value, list):
        raise DamagedError(f"{name} is not a list")
    return value


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        raise DamagedError(f"{name} is not a text")
    return value


def _whole(entry: Mapping[str, Any], name: str, *, least: int) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise DamagedError(f"{name} is not a whole number of at least {least}")
    return value


def _number(entry: Mapping[str, Any], name: str) -> float:
    value = entry.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise DamagedError(f"{name} is not a number")
    return float(value)
