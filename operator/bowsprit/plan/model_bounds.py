"""What a wish asks of its model that the model cannot give on any GPU.

vLLM ends at each of these while it reads its configuration, when the pods hold their GPUs already
(config/model.py: the derived max_model_len, the number of experts, SupportsPP). They are refused before
layouts are sought.
"""

from __future__ import annotations

from bowsprit.api.reasons import Reason
from bowsprit.facts.model import ModelFacts
from bowsprit.plan.result import Refusal
from bowsprit.plan.wish import Demand, Wish


def beyond_the_model(wish: Wish) -> Refusal | None:
    """The first such thing, with the cure."""
    facts = wish.facts
    if facts is None:
        return None
    if fault := _context_fault(facts, wish.demand):
        return Refusal(Reason.INVALID_SPEC, fault, waits=False)
    fault = _expert_fault(facts, wish.demand) or _pipeline_fault(facts, wish.explicit.stages)
    return Refusal(Reason.LAYOUT_REFUSED, fault, waits=False) if fault else None


def _context_fault(facts: ModelFacts, demand: Demand) -> str | None:
    asked, most = demand.max_model_len, facts.max_model_len
    if asked is None or most is None or asked <= most or demand.beyond_max_model_len:
        return None
    return (
        f"spec.capacity.maxModelLen: {asked:,} tokens are more than the {most:,} that config.json allows. "
        f"Ask for at most {most}, raise the limit in spec.architecture.hfOverrides (rope_scaling, "
        "max_position_embeddings), or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 in spec.engine.env."
    )


def _expert_fault(facts: ModelFacts, demand: Demand) -> str | None:
    if not demand.expert_parallel or facts.experts:
        return None
    return f"spec.parallelism.expert: {facts.architecture} has no experts to spread; leave it out."


def _pipeline_fault(facts: ModelFacts, stages: int | None) -> str | None:
    if facts.stageable or stages is None or stages == 1:
        return None
    return (
        f"spec.parallelism: {stages} stages are asked for, and vLLM cannot split {facts.architecture}, "
        "which lacks SupportsPP; leave pipeline and layerPartition out, and set tensor where one GPU is "
        "too small."
    )
