"""GpuLedger: who holds which GPUs, kept as nodes and pods come and go; a Fleet at any time.

From nothing, 5,000 nodes and 20,000 pods take a good part of a planning pass, and most passes follow the
change of a few objects. So the ledger keeps one row per node, works out again only the rows that a change
touched, and `fleet` is the ledger filled in one go: there is one reading of a node and its pods, whichever
way it is reached.

free = allocatable whole GPUs less what pods hold there that are bound to the node, or pinned to it by
Bowsprit, and have not finished; pods that are being deleted hold until they are gone. Never below zero. The
same of CPU, memory and all else that pods ask for: there pods without GPUs count too.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bowsprit.api.pod_requests import HOST_PORT
from bowsprit.inventory.left_out import Reason
from bowsprit.inventory.nodes import NodeView
from bowsprit.inventory.pods import PodKey, PodView
from bowsprit.inventory.products import Card, ProductTable
from bowsprit.inventory.wire import NOTHING
from bowsprit.plan.fleet import Fleet, GpuNode, Holder, LeftOut


class _Row(NamedTuple):
    """What one node adds to the Fleet."""

    node: GpuNode | None
    left_out: tuple[LeftOut, ...]
    product: str
    holders: Mapping[str, int]


_EMPTY = _Row(None, (), "", NOTHING)


def fleet(nodes: Iterable[NodeView], pods: Iterable[PodView], table: ProductTable) -> Fleet:
    """The Fleet of these nodes and pods; any order gives the same."""
    ledger = GpuLedger(table)
    for node in nodes:
        ledger.upsert_node(node)
    for pod in pods:
        ledger.upsert_pod(pod)
    return ledger.fleet()


class GpuLedger:
    """Not for several threads at once. Objects may come in any order, pods before their node too."""

    def __init__(self, table: ProductTable) -> None:
        self._table = table
        self._nodes: dict[str, tuple[NodeView, Card]] = {}
        self._pods: dict[PodKey, PodView] = {}
        """Only those that take something of a node."""
        self._on_node: dict[str, dict[PodKey, PodView]] = {}
        self._rows: dict[str, _Row] = {}
        """Of the nodes that have something to say."""
        self._held: dict[tuple[str, str], int] = {}
        """GPUs by (product, holder), over all rows."""
        self._holders: list[Holder] = []
        """The same by rank, kept in order: there may be thousands, and few change from pass to pass."""
        self._stale: set[str] = set()
        self._fleet: Fleet | None = Fleet(())

    def upsert_node(self, node: NodeView) -> None:
        self._nodes[node.name] = (node, self._table.card(node))
        self._stale.add(node.name)

    def remove_node(self, name: str) -> None:
        if self._nodes.pop(name, None) is not None:
            self._stale.add(name)

    def has_gpus(self, name: str) -> bool:
        """Whether a node has GPUs, so that pods without any matter there too."""
        entry = self._nodes.get(name)
        return entry is not None and bool(entry[0].whole or entry[0].reasons)

    def upsert_pod(self, pod: PodView) -> None:
        key = pod.key
        if key in self._pods:
            self.remove_pod(pod.namespace, pod.name)
        if pod.is_there:
            self._pods[key] = pod
            self._on_node.setdefault(pod.node, {})[key] = pod
            self._stale.add(pod.node)

    def remove_pod(self, namespace: str, name: str) -> None:
        pod = self._pods.pop(PodKey(namespace, name), None)
        if pod is None:
            return
        held = self._on_node[pod.node]
        del held[pod.key]
        if not held:
            del self._on_node[pod.node]
        self._stale.add(pod.node)

    def fleet(self) -> Fleet:
        """The same object as before when nothing changed in between."""
        for name in self._stale:
            before, row = self._rows.get(name, _EMPTY), self._row(name)
            if row == before:
                continue
            self._rows[name] = row
            if row is _EMPTY:
                del self._rows[name]
            self._count_holders(before, -1)
            self._count_holders(row, 1)
            self._fleet = None
        self._stale.clear()
        if self._fleet is None:
            self._fleet = _assemble(self._rows, self._holders)
        return self._fleet

    def _count_holders(self, row: _Row, sign: int) -> None:
        for who, gpus in row.holders.items():
            before = self._held.pop((row.product, who), 0)
            after = before + sign * gpus
            if before:
                old = Holder(who, row.product, before)
                del self._holders[bisect_left(self._holders, _rank(old), key=_rank)]
            if after:
                self._held[row.product, who] = after
                insort(self._holders, Holder(who, row.product, after), key=_rank)

    def _row(self, name: str) -> _Row:
        if not self.has_gpus(name):
            return _EMPTY
        view, card = self._nodes[name]
        pods = self._on_node.get(name, {}).values()
        holders: Counter[str] = Counter()
        for pod in pods:
            for resource, count in pod.gpus:
                if resource == view.resource:
                    holders[pod.holder] += count
        held = holders.total()
        # Of what is no whole GPU only a label may name the product: a guess by instance type would mislead.
        product = (card.product if view.whole else view.product.value) or None
        partly = view.partly + ((card.note,) if card.note else ())
        parts = tuple(LeftOut(name, part.why, part.message, part.gpus, product) for part in partly)
        reasons = view.reasons + ((card.reason,) if card.reason and view.whole else ())
        if not reasons:
            return _Row(_gpu_node(view, card, held, _room(view, pods)), parts, card.product, holders)
        return _Row(None, (_left_out(name, product, reasons, held), *parts), "", NOTHING)


def _left_out(name: str, product: str | None, reasons: tuple[Reason, ...], held: int) -> LeftOut:
    first = reasons[0]
    return LeftOut(
        node=name,
        reason=first.why,
        message="; ".join(reason.message for reason in reasons),
        gpus=first.gpus,
        product=product,
        held=min(held, first.gpus),
    )


def _room(view: NodeView, pods: Iterable[PodView]) -> Mapping[str, int]:
    room = dict(view.offers)
    for pod in pods:
        for resource, amount in pod.needs:
            if resource in room:
                room[resource] -= amount
            elif resource.startswith(HOST_PORT):
                room[resource] = 0
    return room


def _gpu_node(view: NodeView, card: Card, held: int, room: Mapping[str, int]) -> GpuNode:
    free = max(0, view.whole - held)
    return GpuNode(
        name=view.name,
        resource=view.resource,
        product=card.product,
        memory_mib=card.memory_mib,
        linked=card.linked,
        total=view.whole,
        free=free,
        labels=view.labels,
        taints=view.taints,
        architecture=view.architecture,
        capability=card.capability,
        offers={**view.offers, view.resource: view.whole},
        room={**room, view.resource: free},
    )


def _rank(holder: Holder) -> tuple[str, int, str]:
    """By product, the largest first."""
    return holder.product, -holder.gpus, holder.who


def _assemble(rows: Mapping[str, _Row], holders: Iterable[Holder]) -> Fleet:
    in_order = [rows[name] for name in sorted(rows)]
    return Fleet(
        nodes=tuple(row.node for row in in_order if row.node is not None),
        left_out=tuple(left for row in in_order for left in row.left_out),
        holders=tuple(holders),
    )
