"""When a placement has failed, and which nodes to leave alone for a while afterwards.

A pinned pod can still lose its node: somebody else's pod took the GPU first, the kubelet refuses it, the node
goes away. Then its whole group is removed and planned again, and the node rests for a growing time, so that
the next plan does not walk into the same wall. A group that loses a rank while it runs must go as well; no
node is to blame for that, so it is the group that waits when it goes on dying.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace

from bowsprit.controller.backoff import Backoff
from bowsprit.controller.groups import Group, GroupId, State, group_of, is_rank, placed
from bowsprit.inventory.pods import PodView
from bowsprit.plan.fleet import Fleet, LeftOut
from bowsprit.render.names import PLACEMENT_GATE
from bowsprit.status.observed import PodFailure

REST_START_S = 15.0
REST_MAX_S = 300.0
TIDY_S = 60.0
FORGIVEN_S = 600.0
"""A node that has not failed for so long after its rest starts again with a short one."""
UNSCHEDULABLE_S = 5.0
"""How long the scheduler's "no" to a pinned pod may stand: it retries by itself when a pod has just left."""


@dataclass(slots=True)
class Failures:
    """What this process has seen fail. Losing it on a restart costs one more try, nothing else."""

    bind_timeout_s: float
    unbound_since: dict[str, float] = field(default_factory=dict)
    """uid of a pinned pod -> when it was first seen without its node."""
    judged: set[str] = field(default_factory=set)
    """uids of pods whose failure has been counted already."""
    resting: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Node -> (failures in a row, when it may be used again). Pods that run well there prove nothing: they
    have other GPUs."""

    failed: dict[GroupId, PodFailure] = field(default_factory=dict)
    """Group -> how its last placement failed, until it stands again, or how a rank of it ended, until it
    serves again. Its pods may be replaced sooner than anybody looks at them."""

    tidy_at: float = 0.0
    stood: set[GroupId] = field(default_factory=set)
    """Groups of several pods that were seen standing."""
    bereft: set[GroupId] = field(default_factory=set)
    """Groups that have lost a member. Others may have put a new pod in its place before anybody looks, and
    ranks that have lost each other do not find together again: what is left of the group must go."""
    ranks: dict[GroupId, set[str]] = field(default_factory=dict)
    """Group -> uids of its pods, until it loses one. On CPUs nothing holds new ones back until somebody has
    looked, so only these tell what is left of a group from its next life."""
    backoff: Backoff = field(default_factory=Backoff)

    def observe(self, pods: Iterable[PodView], now: float) -> None:
        """Counts failures and runs the clocks for some pods."""
        for pod in pods:
            if is_rank(pod) and group_of(pod) not in self.bereft:
                self.ranks.setdefault(group_of(pod), set()).add(pod.uid)
            if PLACEMENT_GATE in pod.gates and group_of(pod) in self.stood:
                self.bereft.add(group_of(pod))
            elif pod.phase == "Failed" and pod.reason:
                self._fail(pod, now)
            elif is_rank(pod) and pod.has_ended and not pod.terminating:
                self._died(pod, now)
            elif pod.bound:
                self._bound(pod)
            elif placed(pod) and not pod.terminating:
                since = self.unbound_since.setdefault(pod.uid, now)
                if now - since >= self._patience(pod):
                    self._fail(pod, now)

    def forget_all_but(self, pods: Iterable[PodView], now: float) -> None:
        """Drops what is known of pods that no longer exist, now and then: it looks at all of them."""
        if now < self.tidy_at:
            return
        self.tidy_at = now + TIDY_S
        uids, groups = set(), set()
        for pod in pods:
            uids.add(pod.uid)
            groups.add(group_of(pod))
        self.judged &= uids
        self.unbound_since = {uid: at for uid, at in self.unbound_since.items() if uid in uids}
        self.failed = {group: failure for group, failure in self.failed.items() if group in groups}
        self.stood &= groups
        self.bereft &= groups
        self.ranks = {group: ranks for group, ranks in self.ranks.items() if group in groups}
        self.resting = {node: rest for node, rest in self.resting.items() if now - rest[1] <= FORGIVEN_S}
        self.backoff.forget(now)

    def settle(self, groups: Iterable[Group]) -> None:
        """Notes the groups that stand, forgetting their failures, and those that start anew."""
        for group in groups:
            identity, failure = group.id, self.of(group)
            if failure and (group.ready or (failure.binding and _stands(group))):
                del self.failed[identity]
            if group.state is State.STANDING and group.layout.pods > 1:
                self.stood.add(identity)
            if group.state is State.WAITING:
                self.stood.discard(identity)
            if group.state in (State.WAITING, State.STANDING) and identity in self.bereft:
                self.bereft.remove(identity)
                self.ranks[identity] = {pod.uid for pod in group.pods}

    def of(self, group: Group) -> PodFailure | None:
        """How the group's last placement failed."""
        return self.failed.get(group.id)

    def overdue(self, pod: PodView, now: float) -> bool:
        """Its time to bind is over, and nobody has judged it yet."""
        since = self.unbound_since.get(pod.uid)
        return since is not None and pod.uid not in self.judged and now - since >= self._patience(pod)

    def dooms(self, pod: PodView) -> bool:
        """Its group must go: it had its time to bind and did not, or its group has lost a member."""
        return (pod.uid in self.judged and not pod.bound) or (placed(pod) and self._is_left_over(pod))

    def _is_left_over(self, pod: PodView) -> bool:
        group = group_of(pod)
        return group in self.bereft and (bool(pod.gpus) or pod.uid in self.ranks.get(group, ()))

    def at_rest(self, now: float) -> frozenset[str]:
        """Nodes to leave alone."""
        return frozenset(node for node, (_, until) in self.resting.items() if until > now)

    def next_wake(self, pods: Iterable[PodView], now: float) -> float | None:
        """Seconds until a clock runs out for these pods, a node's rest or a group's pause; None when none
        runs."""
        ends = [until for _, until in self.resting.values() if until > now]
        ends += self.backoff.ends(now)
        for pod in pods:
            since = self.unbound_since.get(pod.uid)
            if since is not None and pod.uid not in self.judged:
                ends.append(since + self._patience(pod))
        return max(0.0, min(ends) - now) if ends else None

    def _patience(self, pod: PodView) -> float:
        refused = pod.reason == "Unschedulable"
        return min(UNSCHEDULABLE_S, self.bind_timeout_s) if refused else self.bind_timeout_s

    def _told(self, pod: PodView) -> PodFailure:
        if pod.phase == "Failed" or pod.reason == "Unschedulable":
            return PodFailure(pod.reason, pod.message, binding=True)
        message = f"not bound to {pod.node} within {self.bind_timeout_s:g} s; is the scheduler running?"
        return PodFailure("NotBound", message, binding=True)

    def _bound(self, pod: PodView) -> None:
        self.unbound_since.pop(pod.uid, None)
        self.judged.discard(pod.uid)

    def _fail(self, pod: PodView, now: float) -> None:
        if pod.uid in self.judged:
            return
        self.judged.add(pod.uid)
        self.failed[group_of(pod)] = self._told(pod)
        if pod.finished:
            self.bereft.add(group_of(pod))
        count, until = self.resting.get(pod.node, (0, now))
        if now - until > FORGIVEN_S:
            count = 0
        self.resting[pod.node] = (count + 1, now + min(REST_START_S * 2.0**count, REST_MAX_S))

    def _died(self, pod: PodView, now: float) -> None:
        """Once for each life of a group: the ranks that are left die of the first one's death."""
        group, trouble = group_of(pod), pod.trouble
        if group in self.bereft or trouble is None:
            return
        self.bereft.add(group)
        count, pause = self.backoff.died(group, now)
        message = f"pod {pod.name}: {trouble.message}"
        self.failed[group] = PodFailure(trouble.reason, message, ended=True, times=count, pause_seconds=pause)


def _stands(group: Group) -> bool:
    return group.state is State.STANDING and all(pod.bound for pod in group.pods)


def rested(fleet: Fleet, resting: Container[str]) -> Fleet:
    """The fleet without the nodes that are to be left alone."""
    left = tuple(
        LeftOut(
            node.name,
            "Resting",
            f"node {node.name} refused a pod or did not bind it; it is tried again in at most 5 minutes",
            node.free,
            node.product,
        )
        for node in fleet.nodes
        if node.name in resting
    )
    nodes = tuple(node for node in fleet.nodes if node.name not in resting)
    return replace(fleet, nodes=nodes, left_out=fleet.left_out + left) if left else fleet
