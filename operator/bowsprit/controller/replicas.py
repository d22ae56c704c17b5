"""Matches what was promised with what is there: the planner's view of one model's replicas.

What was promised is the plan that the last pass wrote (kept in memory, and in status.plan for the next
operator); what is there are groups of pods. A group that stands on promised nodes has taken up its promise;
promises that no group has taken up yet are still owed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bowsprit.controller.groups import Group, State, beside, placed
from bowsprit.inventory.pods import PodView
from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan
from bowsprit.status.replicas import RecordedReplica, replicas_from_status


@dataclass(frozen=True, slots=True)
class Replicas:
    """One model's replicas, as plan.wish wants them, with the groups behind them."""

    standing: tuple[tuple[Group, ReplicaPlan], ...] = ()
    """Target revision."""
    outgoing: tuple[tuple[Group, ReplicaPlan], ...] = ()
    """Older revisions that serve, or did last; those most worth keeping first."""
    leaving: tuple[tuple[Group, ReplicaPlan], ...] = ()
    """Any revision: pods being deleted, or about to be because the group is broken or obsolete."""
    partial: tuple[tuple[Group, ReplicaPlan], ...] = ()
    """Groups that have taken up a promise with some of their pods only."""
    lost: tuple[Group, ...] = ()
    """Groups with some pods placed that no promise explains: they must go."""
    promised: tuple[ReplicaPlan, ...] = ()
    """Target revision, not taken up completely; those of `partial` are among them."""
    waiting: tuple[Group, ...] = ()
    """Groups without nodes."""


def recorded(
    status: Mapping[str, Any], decided: tuple[RecordedReplica, ...] | None
) -> tuple[RecordedReplica, ...]:
    """What was promised to a model: by this process if it has decided already, else as the status says."""
    written = replicas_from_status(status)
    if decided is None:
        return written
    revisions = {entry.revision for entry in decided}
    return decided + tuple(entry for entry in written if entry.revision not in revisions)


def match(
    groups: Sequence[Group],
    recorded: Iterable[RecordedReplica],
    target: str | None,
    serving: str | None,
    failed: str | None = None,
) -> Replicas:
    """Sorts groups and promises. `target` is the revision that is planned, `serving` the one that requests go
    to, `failed` one that was given up. Every replica has an index of its own, whatever its revision."""
    owed = _distinct(recorded)
    obsolete = _obsolete(groups, target, serving, failed)
    used = {entry.replica.index for entry in owed}
    taken = {id(group): _take_exact(group, owed) for group in groups if group.state is State.STANDING}
    begun: set[int] = set()
    """Indexes of promises that some group has taken up in part: another one needs a promise of its own."""
    standing: list[tuple[Group, ReplicaPlan]] = []
    outgoing: list[tuple[Group, ReplicaPlan]] = []
    leaving: list[tuple[Group, ReplicaPlan]] = []
    partial, lost, waiting = [], [], []
    for group in groups:
        match group.state:
            case State.STANDING:
                plan = taken[id(group)] or _unrecorded(group, owed, _free_index(used))
                used.add(plan.index)
                kind = standing if group.workload.revision == target else outgoing
                (leaving if group.workload.revision in obsolete else kind).append((group, plan))
            case State.PARTIAL:
                promise = _containing(group, owed, begun) if group.workload.revision == target else None
                if promise is None:
                    lost.append(group)
                else:
                    begun.add(promise.index)
                    partial.append((group, promise))
            case State.WAITING:
                waiting.append(group)
            case State.BROKEN | State.LEAVING:
                leaving.append((group, _unrecorded(group, owed, 0)))
    return Replicas(
        standing=_in_group_order(standing),
        outgoing=_by_worth(_in_group_order(outgoing), serving),
        leaving=tuple(leaving),
        partial=tuple(partial),
        lost=tuple(lost),
        promised=tuple(entry.replica for entry in owed if entry.revision == target),
        waiting=tuple(waiting),
    )


def _obsolete(
    groups: Iterable[Group], target: str | None, serving: str | None, failed: str | None
) -> set[str]:
    """Revisions that were asked for and never served: another edit came first, or they have failed, even if
    some of their replicas are ready by now."""
    if target is None:
        return set()
    ready = {group.workload.revision for group in groups if group.ready} - {failed}
    return {group.workload.revision for group in groups} - ready - {target, serving}


def _by_worth(
    pairs: Sequence[tuple[Group, ReplicaPlan]], serving: str | None
) -> tuple[tuple[Group, ReplicaPlan], ...]:
    """Old replicas that are ready first, then those that requests go to."""
    useless = idle(pairs)

    def worth(pair: tuple[Group, ReplicaPlan]) -> tuple[bool, bool, int]:
        group, plan = pair
        return plan.index in useless, group.workload.revision != serving, plan.index

    return tuple(sorted(pairs, key=worth))


def idle(pairs: Sequence[tuple[Group, ReplicaPlan]]) -> frozenset[int]:
    """Indexes of replicas that can go without one that serves.

    Groups of one LeaderWorkerSet are as good as the best of them: it gives up the last group in any case.
    """
    sets = {group.workload.name for group, _ in pairs if group.ready and group.layout.pods > 1}
    return frozenset(
        plan.index for group, plan in pairs if not group.ready and group.workload.name not in sets
    )


def holding(group: Group) -> ReplicaPlan:
    """What a group holds now, as a replica of its own: pods that have a node and have not finished."""
    pods = tuple(
        PodPlan(pod.node, group.layout.gpus_per_pod, beside(pod, group.layout))
        for pod in group.pods
        if placed(pod) and not pod.finished
    )
    return ReplicaPlan(index=0, layout=group.layout, pods=pods)


def remains(pods: Sequence[PodView]) -> ReplicaPlan:
    """What pods without a workload hold; their layout went with it."""
    held = tuple(PodPlan(pod.node, sum(gpus for _, gpus in pod.gpus), pod.needs) for pod in pods)
    each = max(pod.gpus for pod in held)
    layout = Layout("", tensor=1, pipeline=each * len(held), gpus_per_pod=each, layer_partition=())
    return ReplicaPlan(index=0, layout=layout, pods=held)


def _distinct(recorded: Iterable[RecordedReplica]) -> list[RecordedReplica]:
    """One promise for each replica, the first that was written down: no other can have been made."""
    promises: dict[tuple[str, int], RecordedReplica] = {}
    for entry in recorded:
        promises.setdefault((entry.revision, entry.replica.index), entry)
    return list(promises.values())


def _take_exact(group: Group, owed: list[RecordedReplica]) -> ReplicaPlan | None:
    """Takes the promise that the group stands on out of the list."""
    for position, (revision, replica) in enumerate(owed):
        there = replica.layout.on_cpus or Counter(group.nodes) == _nodes(replica)
        if _same(group, revision, replica.layout) and there:
            del owed[position]
            return replace(replica, pods=holding(group).pods)
    return None


def _containing(group: Group, owed: Iterable[RecordedReplica], begun: Container[int]) -> ReplicaPlan | None:
    have = Counter(group.nodes)
    fits = (
        replica
        for revision, replica in owed
        if replica.index not in begun and _same(group, revision, replica.layout) and have <= _nodes(replica)
    )
    return next(fits, None)


def _same(group: Group, revision: str, layout: Layout) -> bool:
    return group.workload.revision == revision and group.layout == layout


def _nodes(replica: ReplicaPlan) -> Counter[str]:
    return Counter(pod.node for pod in replica.pods)


def _unrecorded(group: Group, owed: Iterable[RecordedReplica], index: int) -> ReplicaPlan:
    """A replica that stands without a record of it (the status was lost): its pods say all that matters."""
    twin = next((replica for _, replica in owed if replica.layout == group.layout), None)
    return replace(
        holding(group), index=index, stages=twin.stages if twin else (), why=twin.why if twin else ""
    )


def _free_index(used: set[int]) -> int:
    return next(index for index in range(len(used) + 1) if index not in used)


def _in_group_order(pairs: list[tuple[Group, ReplicaPlan]]) -> tuple[tuple[Group, ReplicaPlan], ...]:
    """Numbers replicas of one LeaderWorkerSet like its groups, because scaling down takes the last group."""
    numbers: dict[str, list[int]] = {}
    for group, plan in pairs:
        numbers.setdefault(group.workload.name, []).append(plan.index)
    for indices in numbers.values():
        indices.sort(reverse=True)
    return tuple((group, replace(plan, index=numbers[group.workload.name].pop())) for group, plan in pairs)
