"""From a wish to its options: every layout on every GPU type that it may use, the cheapest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bowsprit.api.scheduling import Objective
from bowsprit.plan.ask import Option
from bowsprit.plan.capability import too_old
from bowsprit.plan.ground import Site
from bowsprit.plan.layout import Bound, Candidates, Cut, Field, Shape, candidates, measured_candidates
from bowsprit.plan.lws_bounds import in_one_pod, lws_missing
from bowsprit.plan.model_bounds import beyond_the_model
from bowsprit.plan.result import Refusal
from bowsprit.plan.wish import Wish


@dataclass(frozen=True, slots=True)
class SiteBound:
    """Why a tensor size gives no layout on a GPU type."""

    site: Site
    bound: Bound


@dataclass(frozen=True, slots=True)
class Options:
    sites: tuple[Site, ...]
    options: tuple[Option, ...]
    bounds: tuple[SiteBound, ...]
    beyond: Refusal | None = None
    """What is asked and cannot be had on any GPU; then there are no options."""


def options_of(wish: Wish, sites: tuple[Site, ...]) -> Options:
    beyond = beyond_the_model(wish)
    if beyond is not None:
        return Options(sites, (), (), beyond)
    found: list[tuple[Site, Cut]] = []
    bounds: list[SiteBound] = []
    for site in sites:
        if fault := too_old(site, wish.facts, wish.demand):
            bounds.append(SiteBound(site, Bound(0, Field.PRODUCTS, fault)))
            continue
        result = candidates_of(wish, site)
        bounds.extend(SiteBound(site, bound) for bound in result.bounds)
        for cut in result.cuts:
            if cut.pod_gpus <= site.largest:
                found.append((site, cut))
            else:
                text = f"a pod of {cut.pod_gpus} GPUs is more than a node has: the largest has {site.largest}"
                field = Field.GPUS_PER_POD if wish.explicit.gpus_per_pod else Field.TENSOR
                bounds.append(SiteBound(site, Bound(cut.tensor, field, text, pod_gpus=cut.pod_gpus)))
    options = _ranked(found, wish)
    if options and wish.one_pod_only:
        found = in_one_pod(found, wish.explicit)
        if not found:
            return Options(sites, (), tuple(bounds), lws_missing(options[0].site, options[0].cut))
        options = _ranked(found, wish)
    return Options(sites, options, tuple(bounds))


def candidates_of(wish: Wish, site: Site) -> Candidates:
    if wish.measured is not None:
        return measured_candidates(wish.measured.get(site.product, ()), wish.facts, wish.explicit)
    if wish.facts is None:
        raise ValueError(f"{wish.key}: a wish needs facts or a measured table")
    shape = Shape(wish.facts.digest, wish.facts)
    return candidates(shape, wish.demand, wish.explicit, site.memory_mib)


def _ranked(found: Sequence[tuple[Site, Cut]], wish: Wish) -> tuple[Option, ...]:
    """The cheapest first. MinimizeLatency prefers the fewest nodes, then the fewest stages (so one pod, where
    it fits), then the largest tensor size, whatever it costs in GPUs."""
    latencies: dict[tuple[int, int, bool, int], int] = {}
    if wish.objective is Objective.MINIMIZE_LATENCY:
        keys = sorted({_latency_key(site, cut) for site, cut in found})
        latencies = {key: rank for rank, key in enumerate(keys)}
    options = [
        Option(
            site,
            cut,
            latencies.get(_latency_key(site, cut), 0),
            _serving(site, cut, found),
            wish.needs,
            merges=wish.explicit.gpus_per_pod is None,
        )
        for site, cut in found
    ]
    return tuple(sorted(options, key=lambda option: (option.cost, option.site.product, option.cut.tensor)))


def _serving(site: Site, cut: Cut, found: Sequence[tuple[Site, Cut]]) -> int:
    """How many layouts of as many GPUs on the same site serve better."""
    better = -1 if site.linked else 1
    others = [other for place, other in found if place is site and other.gpus == cut.gpus]
    return sum((other.padded, better * other.tensor) < (cut.padded, better * cut.tensor) for other in others)


def _latency_key(site: Site, cut: Cut) -> tuple[int, int, bool, int]:
    return (-(-cut.gpus // site.largest), cut.pipeline, cut.padded, -cut.tensor)
