"""In words: why no layout of a model can be had, and the layout nearest to what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bowsprit.api.reasons import Reason
from bowsprit.plan.ask import Option
from bowsprit.plan.layout import Field
from bowsprit.plan.options import Options, SiteBound, options_of
from bowsprit.plan.result import Refusal
from bowsprit.plan.wish import ExplicitLayout, Wish
from bowsprit.plan.words import count, listed, short


def no_layout(wish: Wish, options: Options) -> Refusal:
    """`options` has sites and no layout on any of them."""
    too_large = [each for each in options.bounds if each.bound.pod_gpus]
    if too_large:
        return _larger_node(wish, options, min(too_large, key=lambda each: each.bound.pod_gpus))
    old = [each for each in options.bounds if each.bound.field is Field.PRODUCTS]
    if len(old) == len(options.sites):
        why = "; ".join(each.bound.text for each in old)
        message = f"No GPU type that is there runs the checkpoint: {why}."
        return Refusal(Reason.NO_MATCHING_NODES, message, product=old[0].site.product)
    product = options.sites[0].product
    if wish.explicit != ExplicitLayout() and options.bounds:
        nearest = _nearest(wish, options)
        first = options.bounds[0]
        message = f"{first.bound.field}: {first.bound.words} on {short(first.site.product)}."
        if nearest is not None:
            message += f" The nearest that works: {_layout(nearest)}."
            return Refusal(
                Reason.LAYOUT_REFUSED, message, nearest.cut.gpus, product=nearest.site.product, waits=False
            )
    bounds = listed(_by_site(options.bounds), shown=4)
    message = f"No layout holds the model: {bounds or 'the measured table has no row for ' + product}."
    message += " Ask for a shorter maxModelLen or less concurrency, quantise the model, or use larger GPUs."
    return Refusal(Reason.DOES_NOT_FIT, message, product=product, waits=False)


def _larger_node(wish: Wish, options: Options, least: SiteBound) -> Refusal:
    """A node that does not exist yet would do: where nodes come and go, it may come."""
    site, pod = least.site, least.bound.pod_gpus
    message = (
        f"Each pod takes {count(pod, 'GPU')} on one node, and the largest node of {short(site.product)} has "
        f"{site.largest}. Add a node with {pod}: the model is planned as soon as one is there."
    )
    if smaller := [each for each in options.bounds if each.site is site and not each.bound.pod_gpus]:
        message += f" Fewer GPUs will not do: {listed(_by_site(smaller))}."
    nearest = _nearest(wish, options)
    if nearest is not None:
        message += f" Or change {least.bound.field}: the nearest that works now: {_layout(nearest)}."
    else:
        message += " Or ask for a shorter maxModelLen or less concurrency."
    return Refusal(Reason.NO_MATCHING_NODES, message, pod, pod, product=site.product)


def _layout(option: Option) -> str:
    cut = option.cut
    gpus = f"{count(cut.gpus, 'GPU')} of {short(option.site.product)}"
    return f"tensor {cut.tensor}, pipeline {cut.pipeline} ({gpus})"


def _by_site(bounds: Sequence[SiteBound]) -> Iterator[str]:
    """What bounds the tensor sizes of each GPU type; what bounds several alike is said once."""
    alike: dict[tuple[str, int, str, str], dict[int, str]] = {}
    for site, bound in ((each.site, each.bound) for each in bounds):
        key = (short(site.product), site.memory_mib, bound.text, bound.rest)
        alike.setdefault(key, {})[bound.tensor] = bound.amount
    for (product, memory_mib, text, rest), amounts in alike.items():
        gpu = f"on {product} ({memory_mib / 1024:.1f} GiB)"
        if any(amounts.values()):
            each = ", ".join(f"{amount} with tp={tensor}" for tensor, amount in sorted(amounts.items()))
            yield f"{gpu} {text} {each}{rest}"
        else:
            sizes = ", ".join(str(tensor) for tensor in sorted(amounts) if tensor)
            yield f"{gpu}, tp={sizes}: {text}" if sizes else f"{gpu}: {text}"


def _nearest(wish: Wish, options: Options) -> Option | None:
    """The layout nearest to what was asked for, with as much of it kept as works."""
    asked, stages = wish.explicit, wish.explicit.stages
    if stages is not None and wish.facts is not None:
        stages = min(stages, len(wish.facts.layers))
    for loosened in (
        ExplicitLayout(tensor=asked.tensor, pipeline=asked.pipeline, layer_partition=asked.layer_partition),
        ExplicitLayout(tensor=asked.tensor, pipeline=stages),
        ExplicitLayout(tensor=asked.tensor),
        ExplicitLayout(pipeline=stages),
        ExplicitLayout(),
    ):
        found = options_of(replace(wish, explicit=loosened), options.sites).options
        if found:
            tensor = asked.tensor or 1
            return min(
                found, key=lambda option: (abs(option.cut.tensor - tensor), option.cost, option.site.product)
            )
    return None
