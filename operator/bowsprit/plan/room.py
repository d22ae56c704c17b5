"""In words: which nodes have free GPUs that a pod cannot use, because it needs something else there too."""

from __future__ import annotations

from collections.abc import Iterator

from bowsprit.api.pod_requests import PODS
from bowsprit.plan.ask import Option
from bowsprit.plan.ground import Stock
from bowsprit.plan.needs import Needs, amount_words, shortfall
from bowsprit.plan.words import count, listed


def needs_words(needs: Needs) -> str:
    """For example: 16 CPUs, 64 GiB of memory. That a pod is one of the node's pods goes without saying."""
    return ", ".join(amount_words(*each) for each in needs if each[0] != PODS) or "a place among its pods"


def crowded_nodes(option: Option, stock: Stock) -> str:
    """Nodes of the site with room for fewer pods than their free GPUs would take, most GPUs first."""
    return listed(words for _, words in sorted(_crowded(option, stock)))


def _crowded(option: Option, stock: Stock) -> Iterator[tuple[tuple[int, str], str]]:
    site, pod = option.site, option.cut.pod_gpus
    for kind in (*site.kinds, *site.crowded):
        for position in stock.ground.kinds[kind].nodes:
            free = stock.free[position]
            if free < pod:
                continue
            node = stock.ground.nodes[position]
            room = {resource: stock.left(position, resource) for resource, _ in option.needs}
            fit = min([free // pod, *(room[resource] // amount for resource, amount in option.needs)])
            one_more = tuple((resource, (max(0, fit) + 1) * amount) for resource, amount in option.needs)
            if fit < free // pod:
                lack = shortfall(room, node.offers, one_more)
                yield (-free, node.name), f"node {node.name} ({count(free, 'GPU')} free) has {lack}"
