"""Why replicas are not placed: numbers first, then the words that are made of them.

The order of the questions is the order in which a user can do something about it: can the model give what is
asked, are there nodes at all, is the layout that was asked for possible, does any layout fit, and only
then, are enough GPUs free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bowsprit.api.reasons import Reason
from bowsprit.api.scheduling import RolloutMode
from bowsprit.plan.ask import Option
from bowsprit.plan.fleet import Fleet, GpuNode
from bowsprit.plan.ground import Stock, tolerated
from bowsprit.plan.holdings import Holdings
from bowsprit.plan.key import ModelKey
from bowsprit.plan.needs import shortfall
from bowsprit.plan.no_layout import no_layout
from bowsprit.plan.options import Options
from bowsprit.plan.result import Refusal
from bowsprit.plan.room import crowded_nodes, needs_words
from bowsprit.plan.wish import Wish
from bowsprit.plan.words import count, listed, short


@dataclass(frozen=True, slots=True)
class Scarcity:
    """What is left after the pass, and who has the rest."""

    fleet: Fleet
    stock: Stock
    placed_now: Mapping[tuple[ModelKey, str], int]

    def holders(self, product: str, but: ModelKey) -> str:
        """Who holds GPUs of the type, those of this pass included, the largest first."""
        held: Counter[str] = Counter()
        for holder in self.fleet.holders:
            if holder.product == product:
                held[holder.who] += holder.gpus
        for (key, placed), gpus in self.placed_now.items():
            if placed == product:
                held[str(key)] += gpus
        del held[str(but)]
        order = sorted(held.items(), key=lambda pair: (-pair[1], pair[0]))
        return listed(f"{who} holds {gpus}" for who, gpus in order if gpus > 0)

    def left_out(self, products: Sequence[str]) -> str:
        """Nodes that planning may not use now, of these types or of an unknown one."""
        nodes = [
            f"{out.node} ({out.reason}, {count(out.gpus, 'GPU')})"
            for out in sorted(self.fleet.left_out, key=lambda out: (-out.gpus, out.node))
            if out.gpus and (out.product is None or not products or out.product in products)
        ]
        return listed(nodes)


def refuse(model: Holdings, scarcity: Scarcity) -> Refusal:
    """Why `model.missing` replicas have no place."""
    options = model.options
    assert options is not None, "options are sought before anything is refused"
    wish = model.wish
    if options.beyond is not None:
        return options.beyond
    if not options.sites:
        return _no_nodes(wish, scarcity)
    if not options.options:
        return no_layout(wish, options)
    return _in_turn(model) if model.in_turn else _no_room(model, options, scarcity)


def _in_turn(model: Holdings) -> Refusal:
    """There is room for all when the old replicas have gone."""
    old = model.outgoing
    gpus = sum(replica.layout.gpus for replica in old)
    message = (
        f"{count(model.missing, 'replica')} of the new revision take the place of old ones, which serve on "
        f"{count(gpus, 'GPU')} until then: the next goes when the new ones that are starting are Ready."
    )
    return Refusal(Reason.ROLLING_OUT, message, waits=False)


# ---- nothing to choose from -------------------------------------------------------------------------------


def _no_nodes(wish: Wish, scarcity: Scarcity) -> Refusal:
    accelerator = wish.accelerator
    causes = Counter(_cause(wish, node) for node in scarcity.fleet.nodes)
    seen = listed(f"{count(number, 'node')}: {cause}" for cause, number in sorted(causes.items()))
    out = scarcity.left_out(accelerator.products)
    message = f"No node with {accelerator.resource} may serve this model. " + _sentence(
        seen or "the cluster has no GPU node that can be used"
    )
    if out:
        message += _sentence(f" Left out: {out}")
    message += " Change spec.accelerator, or add such a node; the model is planned as soon as one is there."
    return Refusal(Reason.NO_MATCHING_NODES, message, product=next(iter(accelerator.products), None))


def _cause(wish: Wish, node: GpuNode) -> str:
    accelerator = wish.accelerator
    if node.resource != accelerator.resource:
        return f"offers {node.resource}"
    if accelerator.products and node.product not in accelerator.products:
        return f"{node.product} is not among products {', '.join(accelerator.products)}"
    if accelerator.architectures and node.architecture not in accelerator.architectures:
        return f"{node.architecture}, and the images are for {', '.join(accelerator.architectures)}"
    for key, value in accelerator.node_selector:
        if node.labels.get(key) != value:
            return f"label {key} is {node.labels.get(key, 'absent')}, nodeSelector asks for {value}"
    taint = next((t for t in node.taints if not tolerated(t, accelerator.tolerations)), None)
    if taint is None:
        lack = shortfall(node.offers, node.offers, wish.needs)
        return f"too small for a pod, which asks for {needs_words(wish.needs)} ({lack})"
    return f"taint {taint} is not tolerated"


# ---- not enough GPUs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shortage:
    option: Option
    replicas: int
    free: int
    """Free GPUs of the site."""
    largest: int
    """The largest free piece."""
    short: int
    """GPUs that must come free."""

    @property
    def wanted(self) -> int:
        return self.option.cut.gpus * self.replicas

    @property
    def fragmented(self) -> bool:
        return self.free >= self.wanted


def _shortage(option: Option, replicas: int, stock: Stock, kinds: Sequence[int]) -> _Shortage:
    """Of the GPUs of these kinds of nodes, whatever else the nodes lack."""
    sizes = stock.sizes(kinds)
    pod = option.cut.pod_gpus
    pods = option.cut.pods * replicas - sum(free // pod * number for free, number in sizes.items())
    short_by = 0
    gaps = Counter({pod - free % pod: 0 for free in sizes})
    for free, number in sizes.items():
        if free % pod and free // pod * pod + pod <= option.site.largest:
            gaps[pod - free % pod] += number
    for gap, number in sorted(gaps.items()):
        filled = min(max(pods, 0), number)
        short_by += gap * filled
        pods -= filled
    short_by += pod * max(pods, 0)
    return _Shortage(
        option=option,
        replicas=replicas,
        free=sum(free * number for free, number in sizes.items()),
        largest=max(sizes, default=0),
        short=short_by,
    )


def _no_room(model: Holdings, options: Options, scarcity: Scarcity) -> Refusal:
    stock = scarcity.stock
    nearest = min(
        (
            _shortage(option, model.missing, stock, (*option.site.kinds, *option.site.crowded))
            for option in options.options
        ),
        key=lambda each: (each.short, each.option.cost, each.option.site.product),
    )
    if nearest.short == 0:
        return _no_other_room(nearest, stock)
    site = nearest.option.site
    message = _pieces(nearest) if nearest.fragmented else _missing(nearest)
    if held := scarcity.holders(site.product, model.key):
        message += f" The others: {held}."
    if out := scarcity.left_out([site.product]):
        message += f" Left out: {out}."
    if crowded := crowded_nodes(nearest.option, stock):
        message += f" GPUs of some nodes are free and of no use to a pod, {_asks(nearest)}: {crowded}."
    message += _too_large(nearest) + _rollout(model)
    return Refusal(
        reason=Reason.FRAGMENTED if nearest.fragmented else Reason.INSUFFICIENT_GPUS,
        message=message,
        gpus_wanted=nearest.wanted,
        gpus_short=nearest.short,
        product=site.product,
    )


def _no_other_room(shortage: _Shortage, stock: Stock) -> Refusal:
    """There are GPUs enough, on nodes that lack something else."""
    message = (
        f"{_needs(shortage)}, which are free, but a pod cannot start on their nodes, {_asks(shortage)}: "
        f"{crowded_nodes(shortage.option, stock)}. Ask for less in spec.engine.resources (or in "
        "spec.template), or make room there; the model is planned as soon as there is."
    )
    return Refusal(
        Reason.INSUFFICIENT_RESOURCES,
        message,
        gpus_wanted=shortage.wanted,
        product=shortage.option.site.product,
    )


def _asks(shortage: _Shortage) -> str:
    return f"which asks for {needs_words(shortage.option.needs)} besides"


def _needs(shortage: _Shortage) -> str:
    cut = shortage.option.cut
    gpus = f"{count(cut.gpus, 'GPU')} of {short(shortage.option.site.product)}"
    each = f"tp={cut.tensor}, pp={cut.pipeline}: {gpus}"
    if shortage.replicas == 1:
        return f"One more replica takes {each}"
    return f"{shortage.replicas} more replicas take {each} each, {shortage.wanted} in all"


def _missing(shortage: _Shortage) -> str:
    return f"{_needs(shortage)}; {shortage.free} free, {shortage.short} short."


def _pieces(shortage: _Shortage) -> str:
    pod = shortage.option.cut.pod_gpus
    where = (
        f"{count(shortage.option.cut.pods, 'pod')} a replica, each" if shortage.option.cut.pods > 1 else "it"
    )
    return (
        f"{_needs(shortage)}; {shortage.free} are free, but {where} needs {pod} free GPUs on one node; "
        f"the largest free piece is {shortage.largest}, {shortage.short} more must come free beside others."
    )


def _too_large(shortage: _Shortage) -> str:
    total = shortage.option.site.total
    if shortage.wanted <= total:
        return ""
    return f" The cluster has only {total} such GPUs that may be used: add nodes, or ask for less."


def _rollout(model: Holdings) -> str:
    if not model.outgoing:
        return ""
    held = sum(replica.layout.gpus for replica in model.outgoing)
    if model.wish.rollout is RolloutMode.SURGE:
        return f" Mode Surge waits for GPUs beside the old replicas; Auto would use the {held} they hold."
    return f" The old replicas go on serving on {count(held, 'GPU')}."


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
