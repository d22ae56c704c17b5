"""What one model has, keeps and gives up while a plan is made.

GPUs that come back from the model's own old pods are its own first: nobody else is promised them before they
are really free. GPUs of nodes are taken from there before they are taken from what is free for all; so is the
CPU and whatever else these pods took.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan.ask import Placement
from bowsprit.plan.fleet import GpuNode
from bowsprit.plan.ground import may_use
from bowsprit.plan.key import ModelKey
from bowsprit.plan.options import Options
from bowsprit.plan.result import ReplicaPlan
from bowsprit.plan.spare import Load, Spare, Thing, load_of, plus, together
from bowsprit.plan.wish import Wish

SPARE_TRIES = 8
"""Old replicas that are tried one by one whether a rollout can spare them."""


def by_index(replica: ReplicaPlan) -> int:
    return replica.index


class Holdings:
    """The state of one wish during a planning pass."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        standing = sorted(wish.standing, key=by_index)
        self.kept: list[ReplicaPlan] = standing[: wish.replicas]
        self.retire: list[ReplicaPlan] = standing[wish.replicas :]
        self.outgoing: list[ReplicaPlan] = list(wish.outgoing)
        """Old replicas that go on serving, those most worth keeping first."""
        self.coming: dict[Thing, int] = load_of(wish.leaving)
        """What comes back to this model and is not planned for yet."""
        self.options: Options | None = None
        self.placements: list[Placement] = []
        """New replicas."""
        self.in_turn = False
        """What is missing takes the place of old replicas, when those that have begun to do so serve."""

    @property
    def key(self) -> ModelKey:
        return self.wish.key

    @property
    def order(self) -> tuple[int, str, ModelKey]:
        return (-self.wish.priority, self.wish.created, self.wish.key)

    @property
    def promised(self) -> list[ReplicaPlan]:
        """Kept replicas that no pod stands on yet."""
        owed = {id(replica) for replica in self.wish.promised}
        return [replica for replica in self.kept if id(replica) in owed]

    @property
    def missing(self) -> int:
        """Replicas that are neither kept nor placed."""
        return self.wish.replicas - len(self.kept) - len(self.placements)

    @property
    def starting(self) -> int:
        """Replicas that are kept or placed and do not serve yet."""
        return max(0, len(self.kept) - self.wish.ready) + len(self.placements)

    @property
    def expendable(self) -> list[ReplicaPlan]:
        """Old replicas that may make room now: those that nobody misses, and of the others so many that all
        but one of the wanted replicas serve; those most worth keeping first."""
        missed = [replica for replica in self.outgoing if replica.index not in self.wish.idle]
        given_up = len(self.wish.outgoing) - len(self.wish.idle) - len(missed)
        serving = self.wish.ready + self.wish.outgoing_ready - given_up
        spare = max(0, serving - max(0, self.wish.replicas - 1))
        kept = {id(replica) for replica in missed[: max(0, len(missed) - spare)]}
        return [replica for replica in self.outgoing if id(replica) not in kept]

    def retire_replaced(self) -> None:
        """Old replicas are not needed beyond what the new ones do not serve yet."""
        needed = max(0, self.wish.replicas - self.wish.ready)
        self.give_up(self.outgoing[needed:])

    def give_up(self, replicas: Sequence[ReplicaPlan]) -> None:
        """Stop old replicas: their GPUs come back to this model."""
        if not replicas:
            return
        gone = {id(replica) for replica in replicas}
        self.outgoing = [replica for replica in self.outgoing if id(replica) not in gone]
        self.retire.extend(replicas)
        self.coming = together(self.coming, load_of(replicas))

    def keep_promises(self, nodes: Mapping[str, GpuNode], free: Spare) -> None:
        """Keep what was promised while its GPUs are there and its nodes take its pods; `free` is reduced by
        what is kept."""
        for replica in sorted(self.wish.promised, key=by_index):
            if len(self.kept) == self.wish.replicas:
                return
            if not self._may_go(replica, nodes):
                continue
            need = load_of([replica], self.wish.needs)
            victims = self._victims(need, free)
            if victims is not None:
                self.give_up(victims)
                self.take(need, free)
                self.kept.append(replica)

    def _may_go(self, replica: ReplicaPlan, nodes: Mapping[str, GpuNode]) -> bool:
        """Whether the pods, which are not bound yet, can still be started there: taints and labels change."""
        if self.wish.one_pod_only and replica.layout.pods > 1:
            return False
        there = [nodes.get(pod.node) for pod in replica.pods]
        return all(
            node is not None
            and node.product == replica.layout.product
            and may_use(self.wish.accelerator, node)
            for node in there
        )

    def _victims(self, need: Load, free: Spare) -> list[ReplicaPlan] | None:
        """Old replicas that must go for `need`; None when even all of them would not do."""

        def enough(replicas: Sequence[ReplicaPlan]) -> bool:
            back = plus(free, together(self.coming, load_of(replicas)))
            return all(back[thing] >= amount for thing, amount in need.items())

        if self.wish.rollout is not RolloutMode.AUTO:
            return [] if enough([]) else None
        victims = fewest(self.expendable, enough)
        return fewest(self.outgoing, enough) if victims is None and not self.starting else victims

    def take(self, need: Load, free: Spare) -> None:
        """Plan for GPUs and what goes with them: the model's own that come back first, then free ones."""
        for thing, amount in need.items():
            own = min(amount, self.coming.get(thing, 0))
            if own:
                self.coming[thing] -= own
            free[thing] -= amount - own


def fewest(
    replicas: Sequence[ReplicaPlan], enough: Callable[[Sequence[ReplicaPlan]], bool]
) -> list[ReplicaPlan] | None:
    """Few replicas that are `enough`; None when all are too few.

    The fewest of the highest indexes that are enough, less those of them (the first few are tried) that
    can be spared. More replicas are never less enough.
    """
    order = list(reversed(replicas))
    if not enough(order):
        return None
    number = bisect_left(range(len(order)), True, key=lambda size: enough(order[:size]))
    chosen = order[:number]
    for replica in order[: min(number, SPARE_TRIES)]:
        without = [other for other in chosen if other is not replica]
        if enough(without):
            chosen = without
    return chosen
