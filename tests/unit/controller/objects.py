"""Pods, workloads and promises of one model, cut down to what the controller reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bowsprit.api.names import MODEL_LABEL
from bowsprit.controller.children import Child
from bowsprit.controller.groups import LWS_GROUP, LWS_NAME, LWS_RANK, Group, groups_of
from bowsprit.inventory.pods import PodView
from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan
from bowsprit.render.names import PLACEMENT_GATE
from bowsprit.status.replicas import RecordedReplica

NEW, OLD = "new", "old"
PRODUCT = "NVIDIA-A100-80GB-PCIe"
ONE = Layout(PRODUCT, tensor=1, pipeline=1, gpus_per_pod=1, layer_partition=(32,))
THREE = Layout(PRODUCT, tensor=1, pipeline=3, gpus_per_pod=1, layer_partition=(11, 11, 10))
UID = "uid-of-the-model"


def workload(name: str, layout: Layout = ONE, revision: str = NEW, **changes: Any) -> Child:
    child = Child(
        kind="Deployment" if layout.pods == 1 else "LeaderWorkerSet",
        namespace="team",
        name=name,
        uid=f"uid-{name}",
        owner=UID,
        model="llama",
        revision=revision,
        rendered="",
        content="",
        applied="",
        foreign=False,
        replicas=1,
        layout=layout,
        stored=None,
        terminating=False,
    )
    return replace(child, **changes)


def pod(name: str, node: str = "", **changes: Any) -> PodView:
    """A pod of the model: gated without a node; bound and ready with one."""
    view = PodView(
        namespace="team",
        name=name,
        uid=f"uid-{name}",
        node=node,
        bound=bool(node),
        gpus=(("nvidia.com/gpu", 1),),
        phase="Running" if node else "Pending",
        gates=() if node else (PLACEMENT_GATE,),
        ready=bool(node),
        labels={MODEL_LABEL: "llama"},
    )
    return replace(view, **changes)


def pinned(name: str, node: str, **changes: Any) -> PodView:
    """A pod that has been told its node and is not bound yet."""
    return pod(name, node, **{"bound": False, "ready": False, "phase": "Pending", **changes})


def rank(view: PodView, number: int, group: int = 0, of: str = "lws") -> PodView:
    """The pod as a rank of a LeaderWorkerSet group."""
    labels = {**view.labels, LWS_NAME: of, LWS_GROUP: str(group), LWS_RANK: str(number)}
    return replace(view, labels=labels)


def ranks(*nodes: str, group: int = 0, of: str = "lws") -> list[PodView]:
    """A whole group of a LeaderWorkerSet: a rank for each node, "" for one that is still gated."""
    names = [f"{of}-{group}" if number == 0 else f"{of}-{group}-{number}" for number in range(len(nodes))]
    return [
        rank(pod(name, node), number, group, of)
        for number, (name, node) in enumerate(zip(names, nodes, strict=True))
    ]


def sound(_: PodView) -> bool:
    return False


def groups(
    workloads: Child | Sequence[Child], pods: Sequence[PodView], is_broken: Any = sound
) -> tuple[Group, ...]:
    return groups_of([workloads] if isinstance(workloads, Child) else workloads, pods, is_broken)


def replica(index: int, layout: Layout, *nodes: str, why: str = "") -> ReplicaPlan:
    return ReplicaPlan(index, layout, tuple(PodPlan(node, layout.gpus_per_pod) for node in nodes), why=why)


def promise(index: int, layout: Layout, *nodes: str, revision: str = NEW, why: str = "") -> RecordedReplica:
    return RecordedReplica(revision, replica(index, layout, *nodes, why=why))
