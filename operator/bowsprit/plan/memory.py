"""Bytes of GPU memory that each pipeline stage needs: the bound that most layouts meet first.

The account is vLLM's own (v1/worker/gpu_worker.py, 0.32): weights, KV cache, activations, CUDA graphs and
buffers share `utilization` of the memory; the CUDA context and NCCL live in the rest. Weights and KV cache
follow from the model's shape and are exact for the split rules of vLLM; activations, graphs and buffers are
estimates. All sizes are bytes of one GPU of a stage unless a name says GiB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil

from bowsprit.facts.model import Layer, ModelFacts
from bowsprit.plan.cache import cache, context_length
from bowsprit.plan.divide import rank_share
from bowsprit.plan.result import Stage
from bowsprit.plan.wish import Demand

MIB = 2**20
GIB = 2**30

BUFFERS = GIB // 2
"""Input buffers and attention workspaces."""
GRAPHS_DENSE = GIB
GRAPHS_MOE = 2 * GIB
CONTEXT_ALONE = 6 * GIB // 10
"""CUDA context of a rank without peers; it is outside of the engine's share."""
CONTEXT_WITH_PEERS = GIB
"""CUDA context and NCCL buffers of a rank with peers."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What decides the layer split for one tensor size, in bytes per GPU."""

    layers: tuple[float, ...]
    """Weights and KV cache of each layer."""
    first: float
    """Embedding and towers: on the first stage."""
    last: float
    """Output head: on the last stage, unless the first one, which has the tied embedding, is the last."""
    last_alone: float
    """As `last`, when first and last stage are the same."""
    everywhere: float
    """On every stage: activations, graphs, buffers, and weights that vLLM does not split over stages."""

    def stage(self, start: int, end: int, cumulative: Sequence[float]) -> float:
        """Bytes of the stage that holds layers start..end-1; `cumulative` are the prefix sums of `layers`."""
        size = self.everywhere + cumulative[end] - cumulative[start]
        count = len(self.layers)
        if start == 0:
            size += self.first
        if end == count:
            size += self.last_alone if start == 0 else self.last
        return size

    def cumulative(self) -> list[float]:
        return list(accumulate(self.layers, initial=0.0))


def capacity(memory_mib: int, demand: Demand) -> float:
    """The engine's share of one GPU."""
    return memory_mib * MIB * demand.utilization


def context_fits(memory_mib: int, demand: Demand, gpus: int) -> bool:
    """Whether the CUDA context and NCCL fit beside the engine's share."""
    outside = memory_mib * MIB * (1 - demand.utilization)
    return outside >= (CONTEXT_ALONE if gpus == 1 else CONTEXT_WITH_PEERS)


def layer_weights(layer: Layer, facts: ModelFacts, tensor: int, share: float, expert_parallel: bool) -> float:
    """A layer's weights on one tensor rank, which holds `share` of what is split. With expert parallelism the
    fullest rank counts."""
    kv_heads = layer.kv.kv_heads or facts.kv_heads or tensor
    experts = layer.expert_bytes * share
    if expert_parallel and facts.experts:
        experts = layer.expert_bytes * ceil(facts.experts / tensor) / facts.experts
    return (
        layer.sharded_bytes * share
        + layer.kv_projection_bytes * ceil(kv_heads / tensor) / kv_heads
        + experts
        + layer.replicated_bytes
    )


def adapters(values: int, facts: ModelFacts, demand: Demand) -> float:
    """LoRA adapters of matrices with `values` inputs and outputs (vLLM lora/layers): one half of each adapter
    is whole on every tensor rank, and the other is counted so too."""
    return demand.lora_slots * demand.lora_rank * values * facts.dtype_bytes


def activations(facts: ModelFacts, demand: Demand, tensor: int) -> float:
    """Peak of a profiling step, an estimate: hidden states, MLP and attention of all batched tokens, or the
    sampler's logits, whichever is more."""
    sequences = min(demand.max_sequences, demand.max_batched_tokens)
    tokens = min(demand.max_batched_tokens, sequences * context_length(facts, demand))
    mlp_ranks = 1 if demand.expert_parallel and facts.experts else tensor
    attention = (facts.heads + 2 * facts.kv_heads) * facts.head_dim / tensor
    width = 4 * facts.hidden_size + 3 * facts.intermediate_size / mlp_ranks + attention
    return 1.2 * max(facts.dtype_bytes * tokens * width, 10.0 * sequences * facts.vocab_size)


def other(facts: ModelFacts, demand: Demand, tensor: int) -> float:
    """Activations, CUDA graphs and buffers of a rank."""
    graphs = 0 if demand.eager else GRAPHS_MOE if facts.experts else GRAPHS_DENSE
    return activations(facts, demand, tensor) + graphs + BUFFERS


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Bytes of one tensor rank, before the layers are split over stages."""

    layers: Sequence[float]
    embedding: float
    head: float
    tied: bool
    towers: float
    """Outside the layers; on the first stage."""
    everywhere: float
    """On every stage: tables of positions."""


def rank_weights(facts: ModelFacts, demand: Demand, tensor: int) -> RankWeights:
    """As vLLM itself built the model in preflight, where it did; else by its shapes."""
    measured = facts.measured_at(tensor)
    if measured is not None:
        everywhere = min(measured.other, facts.rank_bytes)
        return RankWeights(
            layers=measured.layers,
            embedding=measured.embedding,
            head=measured.head,
            tied=measured.tied,
            towers=measured.other - everywhere,
            everywhere=everywhere,
        )
    share = rank_share(facts, tensor, demand.expert_parallel)
    return RankWeights(
        layers=_each(
            facts.layers, lambda each: layer_weights(each, facts, tensor, share, demand.expert_parallel)
        ),
        embedding=facts.embedding_bytes * share,
        head=facts.head_bytes * share,
        tied=facts.tied,
        towers=facts.extra_bytes,
        everywhere=facts.rank_bytes,
    )


def costs(facts: ModelFacts, demand: Demand, tensor: int, pipeline: int) -> Costs:
    """Everything that a stage is made of, for one tensor size.

    Offloaded weights are taken off the layers evenly: each of the `pipeline` stages keeps cpu_offload_gib of
    its weights in host memory.
    """
    weights = rank_weights(facts, demand, tensor)
    embedding, head, tied = weights.embedding, weights.head, weights.tied
    kept_cache = cache(facts, demand, tensor, pipeline)
    lora = _each(facts.layers, lambda layer: adapters(layer.adapter_values, facts, demand))
    total = sum(weights.layers)
    kept = max(0.0, 1 - demand.cpu_offload_gib * GIB * pipeline / total) if total else 1.0
    untied_head = 0.0 if facts.head_on_every_stage else head
    return Costs(
        layers=tuple(
            weight * kept + kv + adapter
            for weight, kv, adapter in zip(weights.layers, kept_cache.layers, lora, strict=True)
        ),
        first=weights.towers + (0.0 if facts.embedding_on_every_stage else embedding),
        last=(0.0 if facts.embedding_on_every_stage else embedding) if tied else untied_head,
        last_alone=0.0 if tied else untied_head,
        everywhere=other(facts, demand, tensor)
        + weights.everywhere
        + kept_cache.spill
        + adapters(2 * (facts.hidden_size + facts.vocab_size), facts, demand)
        + (embedding if facts.embedding_on_every_stage else 0.0)
        + (head if facts.head_on_every_stage else 0.0),
    )


def _each(layers: Sequence[Layer], size: Callable[[Layer], float]) -> list[float]:
    """The size of every layer; it is reckoned once for a run of equal ones, which most models are."""
    sizes: list[float] = []
    before: Layer | None = None
    current = 0.0
    for layer in layers:
        if before is None or (layer is not before and layer != before):
            before, current = layer, size(layer)
        sizes.append(current)
    return sizes


def stages(
    facts: ModelFacts, demand: Demand, tensor: int, partition: Sequence[int], memory_mib: int
) -> tuple[Stage, ...]:
    """The budget of every stage of a partition, in GiB, for status and for people."""
    pipeline = len(partition)
    engine = other(facts, demand, tensor)
    cost = costs(facts, demand, tensor, pipeline)
    cumulative = cost.cumulative()
    kept_cache = cache(facts, demand, tensor, pipeline)
    answer = []
    start = 0
    for count in partition:
        end = start + count
        size = cost.stage(start, end, cumulative)
        kv = sum(kept_cache.layers[start:end]) + kept_cache.spill
        answer.append(
            Stage(
                layers=count,
                weights_gib=round((size - kv - engine) / GIB, 3),
                kv_gib=round(kv / GIB, 3),
                other_gib=round(engine / GIB, 3),
                capacity_gib=round(capacity(memory_mib, demand) / GIB, 3),
            )
        )
        start = end
    return tuple(answer)
