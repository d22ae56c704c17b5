"""GPU types that are certain not to run a checkpoint: too old for its quantization, or for the dtype.

vLLM checks this when it reads its configuration, with the GPUs in hand (config/vllm.py: "Minimum
capability"). Kernels that fall back (fp8 by Marlin on Ampere) count as running. A type whose compute
capability nobody says, a method that is not in the table, and AMD's types are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping

from bowsprit.facts.model import ModelFacts
from bowsprit.plan.ground import Site
from bowsprit.plan.wish import Demand
from bowsprit.plan.words import short

LEAST: Mapping[str, int] = {
    "awq": 75,
    "autoawq": 75,
    "auto_awq": 75,
    "awq_marlin": 75,
    "fp8": 75,
    "fbgemm_fp8": 75,
    "compressed-tensors": 70,
    "quark": 70,
    "gptq": 60,
    "mxfp4": 80,
    "modelopt": 80,
    "modelopt_fp4": 80,
    "NVFP4": 80,
    "FP8": 80,
    "fp_quant": 100,
}
"""Compute capability times ten by quantization method (vLLM layers/quantization, get_min_capability)."""
_BFLOAT16 = 80


def too_old(site: Site, facts: ModelFacts | None, demand: Demand) -> str | None:
    """Why GPUs of this type cannot run the model, and the cure; None when they may."""
    there = site.capability
    if there is None:
        return None
    least = LEAST.get((facts.quantization if facts else None) or "", 0)
    if facts and there < least:
        return (
            f"vLLM runs {facts.quantization} checkpoints from compute capability {_words(least)} on, and "
            f"{short(site.product)} has {_words(there)}; take a checkpoint in another precision or newer GPUs"
        )
    if demand.dtype == "bfloat16" and there < _BFLOAT16:
        return (
            f"--dtype bfloat16 needs compute capability {_words(_BFLOAT16)}, and {short(site.product)} has "
            f"{_words(there)}; use --dtype float16, or newer GPUs"
        )
    return None


def _words(capability: int) -> str:
    return f"{capability // 10}.{capability % 10}"
