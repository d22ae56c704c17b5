"""From a frame and its plan to the writes that bring the cluster there. Pure: nothing is written here.

Order matters and is kept by the writer: first the promise (status), then the children, then the pins. A kill
between any two leaves nothing that the next pass does not find and finish.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bowsprit.controller.children import PREFLIGHT_KINDS, WORKLOADS
from bowsprit.controller.frame import Frame
from bowsprit.controller.groups import Group, GroupId, placed
from bowsprit.controller.preflight import preflight_leftovers, preflight_manifests
from bowsprit.inventory.pods import PodView
from bowsprit.plan.result import Layout, ModelPlan, ReplicaPlan
from bowsprit.plan.spare import GPUS, Spare, Thing, together
from bowsprit.render.revision import to_controller_revision
from bowsprit.render.services import services
from bowsprit.render.wishes import revision_history_limit
from bowsprit.render.workload import workload

FIRST_TO_GO = "-1000"
"""Deletion cost of a pod that scaling down is to take first; pods have 0 unless somebody says otherwise."""


FORCED = 0
"""Seconds of grace: none, and no waiting for a kubelet that is gone."""
BRIEF = 1
"""Seconds of grace for the ranks of a group that has lost one: they can finish nothing, and their GPUs are
wanted. (The kubelet gives a container two more after its pre-stop.)"""


@dataclass(frozen=True, slots=True)
class Deletion:
    kind: str
    name: str
    uid: str
    grace_seconds: int | None = None
    """How long a pod may take to end; None leaves it what it asks for itself."""
    owner: str = ""
    """uid of the ModelDeployment that it must still belong to; empty when that does not matter."""

    @property
    def target(self) -> str:
        """As users know it."""
        return f"{self.kind}/{self.name}"


class Ranking(NamedTuple):
    pod: PodView
    cost: str | None
    """The deletion cost to write; None takes it away."""


class PinId(NamedTuple):
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Pin:
    pod: PodView
    node: str

    @property
    def id(self) -> PinId:
        return PinId(self.pod.uid, self.node)

    @property
    def load(self) -> dict[Thing, int]:
        """What the pod takes of the node."""
        gpus = sum(count for _, count in self.pod.gpus)
        return {(self.node, what): amount for what, amount in ((GPUS, gpus), *self.pod.needs)}


@dataclass(frozen=True, slots=True)
class Steps:
    manifests: tuple[dict[str, Any], ...] = ()
    rankings: tuple[Ranking, ...] = ()
    """Pods of a Deployment that scaling down is to take first, and those that it is not to any more."""
    evictions: tuple[Deletion, ...] = ()
    """Pods that must go; before a workload is scaled down, or a sound one would go in their place."""
    deletions: tuple[Deletion, ...] = ()
    pins: tuple[Pin, ...] = ()
    held_back: bool = False
    """A replica has all its pods, and what they take is not free yet."""
    paused: bool = False
    """A group waits for the end of its pause (backoff.py)."""


def steps_of(
    frame: Frame,
    plan: ModelPlan | None,
    free: Spare,
    gone: Iterable[str],
    *,
    unanswered: Container[PinId] = (),
    paused: Container[GroupId] = (),
) -> Steps:
    """The writes for one model.

    `free`: what is free now; pins take theirs out of it, so that models of one pass share it.
    `gone`: nodes that no longer exist or no longer answer. `unanswered`: earlier pins that may have come
    true; what they take is off `free` already. `paused`: groups that must not start yet.
    """
    lost_nodes = frozenset(gone)
    evictions = tuple(_evictions(frame, lost_nodes))
    proof = tuple(_free_names(frame, preflight_manifests(frame)))
    leftovers = tuple(Deletion(child.kind, child.name, child.uid) for child in preflight_leftovers(frame))
    if plan is None or frame.declared.deployment is None:
        return Steps(manifests=proof, evictions=evictions, deletions=leftovers)
    manifests = tuple(_free_names(frame, _manifests(frame, workloads_wanted(frame, plan))))
    applied = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    startable = list(_without_node(frame, plan))
    pins, held_back = _pins((each for each in startable if each[0].id not in paused), free, unanswered)
    return Steps(
        manifests=(*proof, *manifests),
        rankings=tuple(_rankings(frame, plan)),
        evictions=evictions,
        deletions=(*leftovers, *_prune(frame, applied)),
        pins=pins,
        held_back=held_back,
        paused=any(group.id in paused for group, _ in startable),
    )


def _free_names(frame: Frame, manifests: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A name that is still taken by an object on its way out is free again soon, and then there is a new
    pass."""
    taken = {(child.kind, child.name) for child in frame.strays}
    for manifest in manifests:
        if (manifest["kind"], manifest["metadata"]["name"]) not in taken:
            yield manifest


def workloads_wanted(frame: Frame, plan: ModelPlan) -> Counter[tuple[str, Layout]]:
    """Replicas wanted of each workload."""
    wanted: Counter[tuple[str, Layout]] = Counter()
    if frame.target is not None:
        wanted.update((frame.target.hash, replica.layout) for replica in plan.replicas)
    retired = Counter(_identity(replica) for replica in plan.retire)
    for group, replica in frame.replicas.outgoing:
        if retired[_identity(replica)] > 0:
            retired[_identity(replica)] -= 1
        else:
            wanted[group.workload.revision, group.layout] += 1
    return wanted


def _identity(replica: ReplicaPlan) -> tuple[int, Layout, tuple[str, ...]]:
    return replica.index, replica.layout, tuple(sorted(pod.node for pod in replica.pods))


def _manifests(frame: Frame, wanted: Mapping[tuple[str, Layout], int]) -> Iterator[dict[str, Any]]:
    owner = frame.declared.owner
    revisions = {child.stored.hash: child.stored for child in frame.children if child.stored is not None}
    if frame.target is not None:
        revisions[frame.target.hash] = frame.target
        yield to_controller_revision(frame.target, owner)
    if (selected := frame.selected) is not None:
        yield from services(owner, selected)
    for (revision, layout), replicas in wanted.items():
        if revision in revisions:
            yield workload(owner, revisions[revision], layout, replicas)


def _rankings(frame: Frame, plan: ModelPlan) -> Iterator[Ranking]:
    """Where pods say otherwise than the plan. A cost that is not ours stays on pods that stay."""
    retired = Counter(_identity(replica) for replica in plan.retire)
    for group, replica in (*frame.replicas.standing, *frame.replicas.outgoing):
        if group.workload.kind != "Deployment":
            continue
        goes = retired[_identity(replica)] > 0
        if goes:
            retired[_identity(replica)] -= 1
        for pod in group.pods:
            if goes != (pod.deletion_cost == FIRST_TO_GO):
                yield Ranking(pod, FIRST_TO_GO if goes else None)


def _evictions(frame: Frame, lost_nodes: frozenset[str]) -> Iterator[Deletion]:
    """Pods of groups that must go, and pods that a lost node will never let go by itself."""
    for group in frame.groups:
        doomed = group.broken or group in frame.replicas.lost
        brief = group.broken and group.layout.pods > 1
        for pod in group.pods:
            if pod.node in lost_nodes and pod.bound and (doomed or pod.terminating):
                yield Deletion("Pod", pod.name, pod.uid, FORCED)
            elif brief and not (pod.terminating and pod.grace <= BRIEF):
                yield Deletion("Pod", pod.name, pod.uid, BRIEF)
            elif doomed and not pod.terminating:
                yield Deletion("Pod", pod.name, pod.uid)
    for pod in (pod for pods in frame.stragglers for pod in pods):
        if pod.terminating and pod.bound and pod.node in lost_nodes:
            yield Deletion("Pod", pod.name, pod.uid, FORCED)


def _prune(frame: Frame, applied: set[tuple[str, str]]) -> Iterator[Deletion]:
    """Children that nothing asks for any more; of old revisions, the newest few are kept."""
    for child in frame.strays:
        if not child.terminating and child.kind not in PREFLIGHT_KINDS:
            yield Deletion(child.kind, child.name, child.uid, owner=child.owner)
    for child in frame.children:
        if child.kind in (*WORKLOADS, "Service") and (child.kind, child.name) not in applied:
            yield Deletion(child.kind, child.name, child.uid)
    yield from _old_revisions(frame)


def _old_revisions(frame: Frame) -> Iterator[Deletion]:
    assert frame.declared.deployment is not None
    in_use = {child.revision for child in frame.children if child.kind in WORKLOADS}
    in_use |= {revision.hash for revision in (frame.target, frame.asked) if revision is not None}
    in_use |= {frame.serving} if frame.serving else set()
    stored = [child for child in frame.children if child.kind == "ControllerRevision"]
    old = [child for child in stored if child.stored is None or child.stored.hash not in in_use]
    old.sort(key=lambda child: child.stored.number if child.stored else 0)
    surplus = len(old) - revision_history_limit(frame.declared.deployment.spec)
    for child in old[: max(0, surplus)]:
        yield Deletion(child.kind, child.name, child.uid)


def _pins(
    startable: Iterable[tuple[Group, ReplicaPlan]], free: Spare, unanswered: Container[PinId]
) -> tuple[tuple[Pin, ...], bool]:
    """Pods that can have their node now: whole groups, or the rest of one, and only where all that they
    take is free.

    The second answer says whether some could not, because it is not.
    """
    ready: list[Pin] = []
    held_back = False
    for group, replica in startable:
        pins = list(_assign(group, replica))
        load = load_of_pins(pin for pin in pins if pin.id not in unanswered)
        if all(free[thing] >= amount for thing, amount in load.items()):
            for thing, amount in load.items():
                free[thing] -= amount
            ready += pins
        else:
            held_back = True
    return tuple(ready), held_back


def load_of_pins(pins: Iterable[Pin]) -> dict[Thing, int]:
    """What they take together."""
    load: dict[Thing, int] = {}
    for pin in pins:
        load = together(load, pin.load)
    return load


def _without_node(frame: Frame, plan: ModelPlan) -> Iterator[tuple[Group, ReplicaPlan]]:
    """Groups with all their pods, some of which have no node yet, and the replicas that they become."""
    if frame.target is None:
        return
    begun = {replica: group for group, replica in frame.replicas.partial}
    standing = Counter(_identity(replica) for _, replica in frame.replicas.standing)
    waiting = [
        group
        for group in frame.replicas.waiting
        if group.workload.revision == frame.target.hash and group.complete
    ]
    for replica in plan.replicas:
        if standing[_identity(replica)] > 0:
            standing[_identity(replica)] -= 1
            continue
        if replica.layout.on_cpus:
            continue
        group = begun.get(replica) or _take(waiting, replica.layout)
        if group is not None and group.complete:
            yield group, replica


def _take(waiting: list[Group], layout: Layout) -> Group | None:
    for position, group in enumerate(waiting):
        if group.layout == layout:
            return waiting.pop(position)
    return None


def _assign(group: Group, replica: ReplicaPlan) -> Iterator[Pin]:
    """Gives the pods without a node the promised nodes that are left, in rank order."""
    left = [pod.node for pod in replica.pods]
    for pod in group.pods:
        if placed(pod):
            left.remove(pod.node)
    for pod in group.pods:
        if not placed(pod):
            yield Pin(pod, left.pop(0))
