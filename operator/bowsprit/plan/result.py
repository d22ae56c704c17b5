"""What the planner answers: replica plans, and refusals as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from bowsprit.plan.key import ModelKey
from bowsprit.plan.needs import Needs

CPU = "cpu"
"""Product of a layout that runs on CPUs, and the resource that its model asks for."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How one replica is cut: the identity of a workload together with the revision."""

    product: str
    tensor: int
    pipeline: int
    gpus_per_pod: int
    """A multiple of `tensor`: tensor parallelism stays inside a pod."""
    layer_partition: tuple[int, ...]
    """Layers per pipeline stage; empty when the number of layers is not known (measured tables)."""

    @property
    def ranks(self) -> int:
        return self.tensor * self.pipeline

    @property
    def gpus(self) -> int:
        """None of them on CPUs."""
        return 0 if self.on_cpus else self.ranks

    @property
    def on_cpus(self) -> bool:
        """Its ranks are no GPUs, and the scheduler chooses the nodes of its pods."""
        return self.product == CPU

    @property
    def pods(self) -> int:
        return self.ranks // self.gpus_per_pod

    def __str__(self) -> str:
        return f"tp{self.tensor}/pp{self.pipeline}"


@dataclass(frozen=True, slots=True)
class PodPlan:
    node: str
    gpus: int
    needs: Needs = field(default=(), compare=False, repr=False)
    """What a pod that stands takes of its node beside GPUs; a record of a plan does not say."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Memory of one GPU of a pipeline stage, in GiB; weights + KV + other is at most capacity."""

    layers: int
    weights_gib: float
    kv_gib: float
    """What the asked-for context and concurrency need (not all that will be free for it)."""
    other_gib: float
    """Activations, CUDA graphs and buffers inside the engine's share of the memory."""
    capacity_gib: float
    """GPU memory x utilization."""


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    index: int
    """Stable number of the replica within its model."""
    layout: Layout
    pods: tuple[PodPlan, ...]
    """In rank order: consecutive pipeline stages next to each other."""
    stages: tuple[Stage, ...] = ()
    why: str = ""
    """User text: why this layout and these nodes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why replicas of a model are not placed. Numbers first: the message is made of them."""

    reason: str
    """One of bowsprit.api.reasons."""
    message: str
    gpus_wanted: int = 0
    """GPUs that the unplaced replicas need in the layout that comes nearest."""
    gpus_short: int = 0
    """How many of those are missing now."""
    product: str | None = None
    waits: bool = True
    """True when free GPUs would cure it; False when only a change of the spec would, or when it goes on by
    itself (a rollout in place)."""


@dataclass(frozen=True, slots=True)
class ModelPlan:
    key: ModelKey
    wanted: int
    replicas: tuple[ReplicaPlan, ...] = ()
    """Standing, promised and new ones, by index; at most `wanted`."""
    retire: tuple[ReplicaPlan, ...] = ()
    """To be stopped now: surplus replicas, and outgoing ones whose GPUs the new revision takes over."""
    refusal: Refusal | None = None
    position: int | None = None
    """Place in the queue of waiting models, from 1; None when it does not wait."""

    @property
    def placed(self) -> bool:
        return len(self.replicas) == self.wanted


@dataclass(frozen=True, slots=True)
class Plan:
    models: tuple[ModelPlan, ...]
    """In the order of (namespace, name)."""
    by_key: dict[ModelKey, ModelPlan] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_key", {model.key: model for model in self.models})
