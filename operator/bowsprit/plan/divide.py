"""Which tensor-parallel sizes a model can have: what vLLM checks at start, and what fails only in its
workers.

vLLM: config/model.py (heads), model_executor/models/llama.py (KV heads), distributed/utils.py divide().
"""

from __future__ import annotations

from math import ceil

from bowsprit.facts.model import Divisor, ModelFacts

TENSOR_SIZES = (1, 2, 4, 8)
"""Sizes that the planner chooses from; an explicit size may be any other that divides."""
UNEVEN_SIZES = (1, 2, 3, 4, 5, 6, 7, 8)
"""The same for a class that pads what does not divide."""


def tensor_fault(facts: ModelFacts, tensor: int, expert_parallel: bool) -> str | None:
    """Why this tensor size cannot be, in the config's own numbers; None when it can."""
    if facts.heads % tensor:
        return f"{facts.heads} attention heads do not divide by {tensor}"
    if fault := _kv_fault(facts, tensor):
        return fault
    divisors = _divisors(facts, expert_parallel)
    return next((fault for divisor in divisors if (fault := _divisor_fault(divisor, tensor))), None)


def rank_share(facts: ModelFacts, tensor: int, expert_parallel: bool) -> float:
    """The part of a split matrix that one rank holds. Where something does not divide it is padded, and the
    dimension that is padded most counts for all. Query heads stay with their KV head."""
    if tensor_fault(facts, tensor, expert_parallel) is None:
        return 1 / tensor
    heads, kv_heads = ceil(facts.heads / tensor), facts.kv_heads
    if kv_heads and kv_heads % tensor and tensor % kv_heads:
        heads = max(heads, ceil(kv_heads / tensor) * ceil(facts.heads / kv_heads))
    padded = (
        ceil(divisor.size / (tensor * divisor.unit)) * divisor.unit / divisor.size
        for divisor in _divisors(facts, expert_parallel)
    )
    return max(heads / facts.heads, *padded, 1 / tensor)


def _divisors(facts: ModelFacts, expert_parallel: bool) -> tuple[Divisor, ...]:
    return facts.expert_parallel_divisors if expert_parallel else facts.divisors


def _kv_fault(facts: ModelFacts, tensor: int) -> str | None:
    if facts.kv_heads == 0 or facts.kv_heads % tensor == 0:
        return None
    if facts.kv_heads > tensor or not facts.kv_replicable:
        return f"{facts.kv_heads} KV heads do not divide by {tensor}"
    if tensor % facts.kv_heads:
        return f"{facts.kv_heads} KV heads cannot be repeated evenly over {tensor} ranks"
    return None


def _divisor_fault(divisor: Divisor, tensor: int) -> str | None:
    if divisor.size % (tensor * divisor.unit) == 0:
        return None
    slices = f" in slices of {divisor.unit}" if divisor.unit > 1 else ""
    return f"{divisor.name} {divisor.size} does not divide by {tensor}{slices}"
