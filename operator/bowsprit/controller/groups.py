"""Which replicas exist: the pods of one model's workloads, sorted into groups.

A group is the pods of one replica: one pod of a Deployment, or one group of a LeaderWorkerSet. What a group
is good for follows from its pods alone, so a killed operator finds everything again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bowsprit.controller.children import Child
from bowsprit.inventory.pods import PodView
from bowsprit.plan.needs import Needs
from bowsprit.plan.result import Layout
from bowsprit.render.names import PLACEMENT_GATE

LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LWS_RANK = "leaderworkerset.sigs.k8s.io/worker-index"

GroupId = tuple[str, str, str]
"""Namespace, workload, and group in it."""


class State(StrEnum):
    WAITING = "waiting"
    """Pods without a node; some may still have to be created."""
    PARTIAL = "partial"
    """Some pods have their node and some do not: the operator was killed between two pins."""
    STANDING = "standing"
    """Every pod has its node."""
    BROKEN = "broken"
    """A pod failed, lost its node, or was refused by it: the group must go."""
    LEAVING = "leaving"
    """A pod is being deleted; the group still holds its GPUs."""


@dataclass(frozen=True, slots=True)
class Group:
    workload: Child
    layout: Layout
    index: str
    """Group index of a LeaderWorkerSet, or the pod's name for a Deployment."""
    pods: tuple[PodView, ...]
    """By rank."""
    state: State
    broken: bool = False
    """A pod of it says that the group must go, whether or not it goes already."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of the pods that have one, by rank."""
        return tuple(pod.node for pod in self.pods if placed(pod))

    @property
    def complete(self) -> bool:
        return len(self.pods) == self.layout.pods

    @property
    def ready(self) -> bool:
        return self.state is State.STANDING and all(pod.ready for pod in self.pods)

    @property
    def id(self) -> GroupId:
        return group_of(self.pods[0])

    @property
    def order(self) -> tuple[str, int, str]:
        """LeaderWorkerSet groups by number: scaling down takes the last."""
        return self.workload.name, int(self.index) if self.index.isdigit() else 0, self.index


def placed(pod: PodView) -> bool:
    """Its node is decided, and the scheduler may bind it there."""
    return bool(pod.node) and PLACEMENT_GATE not in pod.gates


def beside(pod: PodView, layout: Layout) -> Needs:
    """What a pod takes of its node beside the GPUs of its layout.

    When somebody has given it more of them (a LimitRange does, to containers that ask for none), it says here
    how many it takes in all.
    """
    if layout.on_cpus or sum(count for _, count in pod.gpus) <= layout.gpus_per_pod:
        return pod.needs
    return tuple(sorted((*pod.needs, *pod.gpus)))


def holds_gpus(pod: PodView) -> bool:
    """A pod that a controller has made and that keeps GPUs of its node from others."""
    return pod.holds and bool(pod.owner_uid)


def stragglers_of(
    pods: Iterable[PodView], groups: Iterable[Group], adrift: Container[str]
) -> tuple[tuple[PodView, ...], ...]:
    """Pods that hold GPUs and whose workload is gone, by replica: the garbage collector takes them next.

    `adrift`: names of workloads that are there and belong to no ModelDeployment (orphaned ones); their pods
    stay.
    """
    grouped = {pod.uid for group in groups for pod in group.pods}
    left: dict[tuple[str, str], list[PodView]] = defaultdict(list)
    for pod in pods:
        if pod.uid not in grouped and holds_gpus(pod) and membership(pod)[0] not in adrift:
            left[membership(pod)].append(pod)
    return tuple(tuple(sorted(left[key], key=_rank)) for key in sorted(left))


def groups_of(
    workloads: Iterable[Child], pods: Iterable[PodView], is_broken: Callable[[PodView], bool]
) -> tuple[Group, ...]:
    """The groups of all workloads whose layout is known, in a stable order.

    `is_broken` says of one pod that its group must go, for reasons that pods do not show themselves (a node
    that is gone, a bind that took too long).
    """
    by_name = {workload.name: workload for workload in workloads if workload.layout is not None}
    members: dict[tuple[str, str], list[PodView]] = defaultdict(list)
    for pod in pods:
        name, index = membership(pod)
        if name in by_name:
            members[name, index].append(pod)
    found = [_group(by_name[name], index, group, is_broken) for (name, index), group in members.items()]
    return tuple(sorted(found, key=lambda group: group.order))


def membership(pod: PodView) -> tuple[str, str]:
    """Names of the pod's workload and of its group in it."""
    lws = pod.labels.get(LWS_NAME)
    if lws:
        return lws, pod.labels.get(LWS_GROUP, "")
    # A Deployment's pod is named <deployment>-<replica set hash>-<suffix>.
    return pod.name.rsplit("-", 2)[0], pod.name


def group_of(pod: PodView) -> GroupId:
    return (pod.namespace, *membership(pod))


def is_rank(pod: PodView) -> bool:
    """Whether it serves in a group of several pods."""
    return LWS_NAME in pod.labels


def _group(
    workload: Child, index: str, pods: Sequence[PodView], is_broken: Callable[[PodView], bool]
) -> Group:
    assert workload.layout is not None
    ranked = tuple(sorted(pods, key=_rank))
    broken = any(is_broken(pod) for pod in ranked)
    state = _state(ranked, workload.layout, broken)
    return Group(workload, workload.layout, index, ranked, state, broken)


def _rank(pod: PodView) -> tuple[int, str]:
    rank = pod.labels.get(LWS_RANK, "0")
    return (int(rank) if rank.isdigit() else 0), pod.name


def _state(pods: Sequence[PodView], layout: Layout, broken: bool) -> State:
    if any(pod.terminating for pod in pods):
        return State.LEAVING
    if broken:
        return State.BROKEN
    with_node = sum(1 for pod in pods if placed(pod))
    if with_node == layout.pods == len(pods):
        return State.STANDING
    # On CPUs the scheduler gives each pod its node, one after the other, and nobody has promised any.
    return State.WAITING if with_node == 0 or layout.on_cpus else State.PARTIAL
