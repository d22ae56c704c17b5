"""One sentence for every new replica: why this layout, and why these nodes."""

from __future__ import annotations

from bowsprit.api.scheduling import Objective
from bowsprit.plan.ask import Option, Placement
from bowsprit.plan.cache import context_length
from bowsprit.plan.divide import tensor_fault
from bowsprit.plan.ground import Ground
from bowsprit.plan.options import Options
from bowsprit.plan.wish import ExplicitLayout, Wish
from bowsprit.plan.words import count, gib, short


def why(layout_words: str, placement: Placement, ground: Ground, largest_free: int) -> str:
    """For example: "tp=1, pp=5: 5 x A100-80GB-PCIe is the least that holds 262 GiB of weights and 4 x 65,536
    tokens of cache; 48 attention heads do not divide by 5, so the layers are split; over 2 nodes because no
    node had 5 free." """
    return f"{layout_words}; {_nodes(placement, ground, largest_free)}."


def layout_words(wish: Wish, options: Options, option: Option) -> str:
    """The part of the sentence that is the same on any nodes."""
    parts = [_size(wish, options, option), _split(wish, option)]
    return f"tp={option.cut.tensor}, pp={option.cut.pipeline}: " + "; ".join(filter(None, parts))


def _size(wish: Wish, options: Options, option: Option) -> str:
    cut = option.cut
    gpus = f"{cut.gpus} x {short(option.site.product)}"
    if wish.explicit != ExplicitLayout() and (wish.explicit.tensor or wish.explicit.pipeline):
        return f"{gpus}, as parallelism asks"
    least = min(options.options, key=lambda other: other.cut.gpus)
    if wish.objective is Objective.MINIMIZE_LATENCY:
        best = options.options[0]
        if option.latency == best.latency:
            return f"{gpus}, the fewest stages and the largest tensor size that fit (MinimizeLatency)"
        return f"{gpus}, as tp={best.cut.tensor}, pp={best.cut.pipeline} has no room now (MinimizeLatency)"
    if cut.gpus > least.cut.gpus:
        other = f"tp={least.cut.tensor}, pp={least.cut.pipeline} on {least.cut.gpus} x "
        other += short(least.site.product)
        return f"{gpus}, because {other} has no room beside the other models now"
    return f"{gpus} is the least that {_burden(wish)}"


def _burden(wish: Wish) -> str:
    if wish.facts is None or wish.measured is not None:
        return "the measured table allows"
    tokens = context_length(wish.facts, wish.demand)
    cache = f"{wish.demand.concurrency} x {tokens:,} tokens of cache"
    return f"holds {gib(wish.facts.weight_bytes)} of weights and {cache}"


def _split(wish: Wish, option: Option) -> str:
    cut = option.cut
    if cut.gpus == 1:
        return ""
    if cut.pipeline == 1:
        padded = ", with what does not divide padded" if cut.padded else ""
        linked = ", as its GPUs are linked" if option.site.linked else ""
        return f"tensor parallelism inside one pod{linked}{padded}"
    if wish.facts is not None and cut.tensor == 1:
        fault = tensor_fault(wish.facts, cut.gpus, wish.demand.expert_parallel)
        if fault is not None:
            return f"{fault}, so the layers are split"
    if not option.site.linked:
        return "the GPUs are not linked, so the layers are split"
    return "the layers are split"


def _nodes(placement: Placement, ground: Ground, largest_free: int) -> str:
    gpus = placement.option.cut.gpus
    if len(placement.nodes) == 1:
        return f"on node {ground.nodes[placement.nodes[0][0]].name}"
    if largest_free < gpus:
        return f"over {count(len(placement.nodes), 'node')} because no node had {gpus} free"
    return f"over {count(len(placement.nodes), 'node')}, so that all models that can be placed are"
