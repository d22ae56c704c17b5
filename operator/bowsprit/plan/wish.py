"""What one ModelDeployment asks of the planner, and what it has already.

A Wish is the whole input for one model: facts, demand, explicit choices, and the replicas that stand or are
promised. The planner sees all wishes and one Fleet, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bowsprit.api.scheduling import Objective, RolloutMode
from bowsprit.facts.model import ModelFacts
from bowsprit.plan.fleet import Toleration
from bowsprit.plan.key import ModelKey
from bowsprit.plan.needs import Needs
from bowsprit.plan.result import ReplicaPlan


@dataclass(frozen=True, slots=True)
class Demand:
    """What every replica must be able to hold at once."""

    max_model_len: int | None = None
    """Tokens; None takes the model's own limit."""
    concurrency: int = 1
    """Requests of max_model_len that must fit in the KV cache together."""
    utilization: float = 0.92
    """Share of a GPU's memory that the engine may use (vLLM gpu_memory_utilization)."""
    kv_dtype_bytes: int | None = None
    """Bytes of one cached value; None takes the model's."""
    cpu_offload_gib: float = 0.0
    """GiB of weights per GPU that are kept in host memory."""
    max_batched_tokens: int = 2048
    max_sequences: int = 256
    eager: bool = False
    """No CUDA graphs."""
    block_tokens: int = 16
    """Tokens of a KV cache block."""
    lora_slots: int = 0
    """LoRA adapters that are in GPU memory at once; 0 without LoRA."""
    lora_rank: int = 16
    """Largest rank of an adapter."""
    whole_windows: bool = False
    """Layers with a sliding window keep the whole context, as those without."""
    wide_states: bool = False
    """Recurrent states are kept in float32."""
    dtype: str | None = None
    """What the user asked to serve in; None takes the model's, or what the GPU has instead."""
    expert_parallel: bool = False
    uneven_tensor: bool = False
    """The model class pads what a tensor size does not divide."""
    beyond_max_model_len: bool = False
    """The user's word that the model may be asked for more than its config says."""


@dataclass(frozen=True, slots=True)
class ExplicitLayout:
    """The user's own choices; each wins over the planner's and is checked."""

    tensor: int | None = None
    pipeline: int | None = None
    gpus_per_pod: int | None = None
    layer_partition: tuple[int, ...] | None = None

    @property
    def stages(self) -> int | None:
        """The user's number of stages, said by `pipeline` or by `layer_partition`."""
        return self.pipeline or (len(self.layer_partition) if self.layer_partition else None)


@dataclass(frozen=True, slots=True)
class Accelerator:
    """Which nodes may serve the model."""

    resource: str = "nvidia.com/gpu"
    products: tuple[str, ...] = ()
    """Exact product labels; empty allows all."""
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    """As the pods will carry them (the toleration for the taint named like the resource is among them)."""
    architectures: tuple[str, ...] = ()
    """CPU architectures that the images are for (amd64, arm64); empty allows all."""


@dataclass(frozen=True, slots=True)
class MeasuredLayout:
    """A row of the user's own table: with this tp, at least that many stages fit (CLI --layouts)."""

    tensor: int
    min_pipeline: int


@dataclass(frozen=True, slots=True)
class Wish:
    key: ModelKey
    created: str
    """RFC 3339 creation time: earlier models go first within a priority. Only compared, never read."""
    replicas: int
    """Wanted replicas of the target revision; 0 when suspended."""
    facts: ModelFacts | None
    """None only with `measured`."""
    demand: Demand = field(default_factory=Demand)
    explicit: ExplicitLayout = field(default_factory=ExplicitLayout)
    objective: Objective = Objective.MINIMIZE_GPUS
    accelerator: Accelerator = field(default_factory=Accelerator)
    needs: Needs = ()
    """What each pod takes of its node beside GPUs."""
    uncounted: tuple[str, ...] = ()
    """What the user asked of the engine that takes memory and is not planned for: sentences."""
    priority: int = 0
    rollout: RolloutMode = RolloutMode.AUTO
    measured: Mapping[str, tuple[MeasuredLayout, ...]] | None = field(default=None, hash=False)
    """By GPU product; replaces the memory model."""
    standing: tuple[ReplicaPlan, ...] = ()
    """Replicas of the target revision whose pods are pinned or bound: off Fleet.free already."""
    promised: tuple[ReplicaPlan, ...] = ()
    """Replicas decided in an earlier pass whose pods are not pinned yet: not yet off Fleet.free."""
    outgoing: tuple[ReplicaPlan, ...] = ()
    """Replicas of older revisions that still stand (off Fleet.free), those most worth keeping first."""
    leaving: tuple[ReplicaPlan, ...] = ()
    """Replicas of any revision on their way out: still off Fleet.free, free without further action."""
    ready: int = 0
    """How many of `standing` serve."""
    outgoing_ready: int = 0
    """How many of `outgoing` serve."""
    idle: frozenset[int] = frozenset()
    """Indexes of the `outgoing` that nobody misses: they do not serve, and none that does goes with them."""
    one_pod_only: bool = False
    """Replicas of several pods cannot be started: LeaderWorkerSet is not installed."""
