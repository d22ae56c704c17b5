"""Bytes of KV cache and recurrent states of each layer on one tensor rank, as vLLM's block pool has them.

Source: vLLM v1/core/kv_cache_utils.py and kv_cache_interface.py (0.32). The pool has pages of one size. A
layer with keys and values fills a page with as many tokens as fit; a recurrent state has a page to itself,
and where a model has both, pages are made large enough for the state. Layers of one kind need as many pages
as the kind needs for the whole demand. A model with layers of several kinds is cut into groups of equally
many layers of one kind; kinds that do not fill their last group pay for layers that are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from bowsprit.facts.model import KvCache, KvKind, ModelFacts
from bowsprit.plan.wish import Demand

STATE_COPIES = 2
"""Recurrent state is kept twice while prefix caching is on (mamba_cache_mode "align", the default)."""
_GROWING = frozenset({KvKind.FULL, KvKind.MLA})


@dataclass(frozen=True, slots=True)
class Cache:
    layers: tuple[float, ...]
    """By layer."""
    spill: float
    """What a stage may need on top when the groups are split over stages: its largest group may have one
    layer more than its share, and every group pays for it."""


def context_length(facts: ModelFacts, demand: Demand) -> int:
    """Tokens of the longest request: what was asked for, else the model's own limit, else 4,096."""
    return demand.max_model_len or facts.max_model_len or 4096


def cache(facts: ModelFacts, demand: Demand, tensor: int, pipeline: int) -> Cache:
    counts = _kinds(layer.kv for layer in facts.layers)
    size = _Sizes(facts, demand, tensor, pipeline)
    if not _mixed(counts, demand):
        alone = {kv: size.layer(kv, size.page([kv])) for kv in counts}
        return Cache(_each(facts, alone), 0.0)
    page, group = size.page(list(counts)), _group(list(counts.values()))
    groups = {kv: ceil(number / group) for kv, number in counts.items()}
    padded = {kv: size.layer(kv, page) * groups[kv] * group / number for kv, number in counts.items()}
    row = sum(groups[kv] * size.layer(kv, page) for kv in counts)
    return Cache(_each(facts, padded), row if pipeline > 1 else 0.0)


def _kinds(caches: Iterable[KvCache]) -> dict[KvCache, int]:
    """How many layers have which cache; layers without one are left out."""
    counts: dict[KvCache, int] = {}
    for kv in caches:
        if kv.kind is not KvKind.NONE:
            counts[kv] = counts.get(kv, 0) + 1
    return counts


def _mixed(counts: Mapping[KvCache, int], demand: Demand) -> bool:
    """Caches that all grow with the whole context need no groups, whatever their widths."""
    whole = _GROWING | {KvKind.SLIDING} if demand.whole_windows else _GROWING
    return len(counts) > 1 and not all(kv.kind in whole for kv in counts)


def _group(numbers: Sequence[int]) -> int:
    """Layers of a group."""
    return max(numbers) if max(numbers) < 1.5 * min(numbers) else min(numbers)


def _each(facts: ModelFacts, size: Mapping[KvCache, float]) -> tuple[float, ...]:
    return tuple(size.get(layer.kv, 0.0) for layer in facts.layers)


@dataclass(frozen=True, slots=True)
class _Sizes:
    facts: ModelFacts
    demand: Demand
    tensor: int
    pipeline: int

    def page(self, caches: Sequence[KvCache]) -> int:
        """Bytes of a page that serves all of these."""
        tokens = [self._token(kv) for kv in caches if kv.kind is not KvKind.STATE]
        states = [self._state(kv) for kv in caches if kv.kind is KvKind.STATE]
        block = self.demand.block_tokens * max(tokens, default=0)
        return ceil(max(states, default=0) / block) * block if block and states else block or max(states)

    def layer(self, kv: KvCache, page: int) -> float:
        """Every request has whole pages; the pool has one null page more."""
        if kv.kind is KvKind.STATE:
            return (STATE_COPIES * self.demand.concurrency + 1) * page
        return (self._pages(kv, page // self._token(kv)) + 1) * page

    def _pages(self, kv: KvCache, block: int) -> int:
        """A sliding window keeps its window per request and once the tokens that are in flight: a batch for
        each stage, and one that is scheduled ahead (config/vllm.py)."""
        demand, length = self.demand, context_length(self.facts, self.demand)
        whole = demand.concurrency * ceil(length / block)
        if kv.kind is not KvKind.SLIDING or demand.whole_windows:
            return whole
        window = demand.concurrency * (ceil(min(max(kv.window - 1, 1), length) / block) + 1)
        in_flight = demand.max_batched_tokens * (self.pipeline + 1)
        return min(whole + demand.concurrency, window + ceil(in_flight / block))

    def _token(self, kv: KvCache) -> int:
        """Bytes of one token in one layer."""
        heads = max(1, ceil(kv.kv_heads / self.tensor))
        values = kv.latent_values if kv.kind is KvKind.MLA else heads * kv.values_per_head
        return max(1, values * (self.demand.kv_dtype_bytes or self.facts.kv_dtype_bytes))

    def _state(self, kv: KvCache) -> int:
        """A state that is float32 in part already is counted as if it were not: rather too much."""
        wide = 2 if self.demand.wide_states else 1
        return ceil(kv.state_bytes * wide / self.tensor)
