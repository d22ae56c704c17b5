"""The GPUs of the cluster at one instant, as planning sees them.

A Fleet is frozen: one planning pass reads one Fleet. What a node may not be used for has already been decided
by whoever read the cluster (bowsprit.inventory); the nodes that were left out are carried along with the
reason, so that a refusal can name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """As kubectl shows it."""
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A core/v1 toleration; empty `key` tolerates every taint, empty `effect` every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A node that may take pods now. GPUs are whole and exclusive."""

    name: str
    resource: str
    """Extended resource of the device plugin, e.g. nvidia.com/gpu."""
    product: str
    """GPU type as the node's label says it, e.g. NVIDIA-A100-80GB-PCIe."""
    memory_mib: int
    """Memory of one GPU in MiB, as the driver reports it."""
    linked: bool
    """The node's GPUs are joined by NVLink or xGMI."""
    total: int
    """Allocatable GPUs."""
    free: int
    """Allocatable GPUs less those that pods hold; never below zero."""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False, compare=True)
    taints: tuple[Taint, ...] = ()
    architecture: str = "amd64"
    """Of the CPU."""
    capability: int | None = None
    """Compute capability of the GPUs times ten (A100: 80); None when nobody says, and for AMD's."""
    offers: Mapping[str, int] = field(default_factory=dict, hash=False, compare=True)
    """Allocatable of everything, in the units of plan.needs; GPUs only where the cluster was read."""
    room: Mapping[str, int] = field(default_factory=dict, hash=False, compare=True)
    """`offers` less what pods take; below zero when they take more. What is not said: see needs.left."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A node that planning does not use, or uses only in part, and why (user text)."""

    node: str
    reason: str
    """Machine reason: Cordoned, NotReady, MIG, Shared, MemoryUnknown, MixedModels, Unhealthy, …"""
    message: str
    gpus: int
    """GPUs that are there and not used because of it."""
    product: str | None = None
    held: int = 0
    """How many of `gpus` pods hold all the same (pods on a cordoned node run on)."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds GPUs of a type: `namespace/name` of a ModelDeployment, or of a foreign pod."""

    who: str
    product: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Fleet:
    nodes: tuple[GpuNode, ...]
    left_out: tuple[LeftOut, ...] = ()
    holders: tuple[Holder, ...] = ()
