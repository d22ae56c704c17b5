"""What arbitration works on: per model, how many replicas are missing and how each could be cut.

An Ask is a Wish after the layouts have been found; nothing of the model itself is left in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from bowsprit.plan.ground import Site
from bowsprit.plan.key import ModelKey
from bowsprit.plan.layout import Cut
from bowsprit.plan.needs import Needs


@dataclass(frozen=True, slots=True)
class Option:
    """One way to place a replica, and what it costs by each level of the objective."""

    site: Site
    cut: Cut
    latency: int
    """Rank among the model's options under MinimizeLatency, 0 the best; always 0 under MinimizeGPUs."""
    serving: int
    """Rank among the options of the site with as many GPUs, 0 the best: the largest tensor size where GPUs
    are linked, since one pod then has the fast links to itself; else the smallest, since stages talk
    little."""
    needs: Needs = ()
    """What each pod takes of its node beside GPUs."""
    merges: bool = True
    """Stages that lie on one node may share a pod; not when the user fixed the size of pods."""

    @property
    def cost(self) -> tuple[int, int, int]:
        return (self.latency, self.cut.gpus, self.serving)


@dataclass(frozen=True, slots=True)
class Ask:
    key: ModelKey
    created: str
    priority: int
    missing: int
    has_one: bool
    """A replica stands or is promised already."""
    options: tuple[Option, ...]
    """The cheapest first."""

    @property
    def order(self) -> tuple[int, str, ModelKey]:
        """Higher priority, then older, first."""
        return (-self.priority, self.created, self.key)


@dataclass(frozen=True, slots=True)
class Placement:
    """A replica's option, and its GPUs by node position, the fullest node first."""

    option: Option
    nodes: tuple[tuple[int, int], ...]

    @property
    def pod_gpus(self) -> int:
        """Pods are as large as the split over nodes allows: the greatest common divisor of the GPUs on each
        node, because all pods of a group must hold the same number of ranks. Tensor ranks never leave a pod,
        since every node holds whole stages."""
        return gcd(*(gpus for _, gpus in self.nodes)) if self.option.merges else self.option.cut.pod_gpus
