"""ModelFacts: everything that planning needs to know of a model, and nothing else.

Facts come from config.json, a user's or the one that preflight read, and what the engine itself says in
preflight is kept beside them; planning never looks at a config. Every quantity is per layer or per model,
before any parallel split: the split is the planner's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class KvKind(StrEnum):
    """How a layer's cache grows with the context (vLLM v1/kv_cache_interface.py)."""

    FULL = "full"
    """Bytes per token, split over KV heads."""
    SLIDING = "sliding"
    """As FULL, but no more than `window` tokens (plus what is in flight)."""
    MLA = "mla"
    """One latent per token, the same on every tensor-parallel rank."""
    STATE = "state"
    """Constant per request (mamba, linear attention)."""
    NONE = "none"
    """No cache at all (an identity or convolution-free block)."""


@dataclass(frozen=True, slots=True)
class KvCache:
    """Cache need of one layer. `values_per_head` and `latent_values` are numbers of values per token."""

    kind: KvKind
    kv_heads: int = 0
    values_per_head: int = 0
    """Key plus value width of one KV head (usually 2 x head_dim)."""
    latent_values: int = 0
    """MLA only: kv_lora_rank + qk_rope_head_dim."""
    window: int = 0
    """SLIDING only: tokens."""
    state_bytes: int = 0
    """STATE only: bytes per request before the tensor split."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Weight bytes of one layer, by how tensor parallelism splits them."""

    sharded_bytes: int
    """Split evenly over the tensor ranks (query/output projections, MLP, shared experts)."""
    kv_projection_bytes: int
    """Split over min(tp, KV heads): with more ranks than KV heads each rank keeps one whole head."""
    expert_bytes: int
    """Routed experts: split over the tensor ranks, by width or by expert."""
    replicated_bytes: int
    """The same on every rank (norms, router, MLA down-projections)."""
    kv: KvCache
    adapter_values: int = 0
    """Values of a LoRA adapter of rank 1 on all matrices of the layer: their inputs and outputs."""

    @property
    def weight_bytes(self) -> int:
        return self.sharded_bytes + self.kv_projection_bytes + self.expert_bytes + self.replicated_bytes


@dataclass(frozen=True, slots=True)
class Divisor:
    """A dimension that a tensor-parallel size must divide, checked by vLLM only inside the workers.

    `name` is the config field, as the user knows it; `unit` is the least slice a rank may hold (quantization
    group or block), so the rule is: size % (tp * unit) == 0.
    """

    name: str
    size: int
    unit: int = 1


@dataclass(frozen=True, slots=True)
class MeasuredWeights:
    """Bytes of one rank as vLLM itself builds the model for a tensor size, before any pipeline split."""

    tensor: int
    layers: tuple[int, ...]
    embedding: int
    head: int
    other: int
    tied: bool
    """The head is the embedding itself; both say its size."""

    @property
    def total(self) -> int:
        return sum(self.layers) + self.embedding + (0 if self.tied else self.head) + self.other


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model's shape. Bytes are bytes in GPU memory in the checkpoint's own precision."""

    digest: str
    """Hash of the inputs; two equal digests are the same facts (memo key)."""
    architecture: str
    layers: tuple[Layer, ...]
    embedding_bytes: int
    head_bytes: int
    """lm_head; when `tied` it is the embedding itself and is needed on the last stage as well."""
    tied: bool
    extra_bytes: int
    """Outside the layers, replicated on the first stage (vision or audio towers)."""
    hidden_size: int
    intermediate_size: int
    """Widest MLP activation of a token in one layer (for MoE: experts per token x expert width)."""
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    experts: int
    """Routed experts per MoE layer; 0 for a dense model."""
    dtype: str
    """Activation dtype: bfloat16, float16 or float32."""
    dtype_bytes: int
    kv_dtype_bytes: int
    """Bytes of one cached value with kv_cache_dtype=auto."""
    quantization: str | None
    max_model_len: int | None
    """The longest context that the config allows, in tokens; None when it does not say."""
    divisors: tuple[Divisor, ...]
    """What tp must divide with the experts split by width (the default)."""
    expert_parallel_divisors: tuple[Divisor, ...]
    """What tp must divide when whole experts are spread over the ranks."""
    kv_replicable: bool = True
    """KV heads fewer than tp are repeated: then tp % kv_heads == 0 is asked for instead."""
    embedding_on_every_stage: bool = False
    """vLLM builds the embedding on every pipeline stage, not only where it is used (Mixtral)."""
    head_on_every_stage: bool = False
    """The same of the head; never when `tied`, where the embedding says it."""
    stageable: bool = True
    """vLLM's class can be split into pipeline stages (SupportsPP); assumed of a plugin's class."""
    rank_bytes: int = 0
    """On every rank of every stage, whatever the split: tables of positions."""
    measured: tuple[MeasuredWeights, ...] = ()
    """What vLLM itself builds, for the tensor sizes that were tried; it stands in place of what the layers
    above add up to."""
    users_config: str = ""
    """Hash of config.json when it is of a ConfigMap of the user's; empty when preflight read the model's."""
    told: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What they were read from, as a report has it: enough for facts_from_told to read them again."""

    def measured_at(self, tensor: int) -> MeasuredWeights | None:
        return next((each for each in self.measured if each.tensor == tensor), None)

    @property
    def weight_bytes(self) -> int:
        """Of the whole checkpoint, in GPU memory."""
        if self.measured:
            return self.measured[0].total * self.measured[0].tensor
        layers = sum(layer.weight_bytes for layer in self.layers)
        return layers + self.embedding_bytes + (0 if self.tied else self.head_bytes) + self.extra_bytes


@dataclass(frozen=True, slots=True)
class FactsError:
    """Why a config gives no facts. `reason` is one of bowsprit.api.reasons; `field` is the config field."""

    reason: str
    field: str
    message: str
