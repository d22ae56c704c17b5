"""Nodes and pods from `--inventory` files, as `kubectl get nodes,pods -A -o yaml` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bowsprit.cli.documents import INVENTORY_LIMIT_MIB, Document, read_files
from bowsprit.cli.problems import BadInput, Problem
from bowsprit.inventory.documents import read_inventory
from bowsprit.inventory.ledger import fleet
from bowsprit.inventory.nodes import NodeView
from bowsprit.inventory.pods import PodView
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.fleet import Fleet

_LISTS = ("List", "NodeList", "PodList")
_WANTED = "an inventory is what `kubectl get nodes,pods -A -o yaml` prints"


@dataclass(frozen=True, slots=True)
class Inventory:
    nodes: tuple[NodeView, ...]
    pods: tuple[PodView, ...]
    products: ProductTable
    notes: tuple[str, ...] = ()
    """What was seen and is not counted, for the user to know."""

    @property
    def fleet(self) -> Fleet:
        return fleet(self.nodes, self.pods, self.products)


def read_inventory_files(paths: list[str], products: ProductTable) -> Inventory:
    """Raises BadInput when a file cannot be read at all; odd objects in it become notes."""
    read = read_files(paths, INVENTORY_LIMIT_MIB)
    problems = [*read.problems, *(problem for each in read.documents for problem in _faults(each))]
    if problems:
        raise BadInput(problems)
    nodes, pods, notes = read_inventory([document.body for document in read.documents])
    if not nodes and any(_says_something(document) for document in read.documents):
        raise BadInput([Problem(read.documents[0].place, "kind", f"no Node in it; {_WANTED}")])
    return Inventory(tuple(nodes), tuple(pods), products, tuple(map(str, notes)))


def _faults(document: Document) -> Iterator[Problem]:
    kind = document.body.get("kind")
    if not isinstance(kind, str):
        yield Problem(document.place, "kind", f"is missing; {_WANTED}")
    elif kind in _LISTS and not isinstance(document.body.get("items"), list):
        yield Problem(document.place, "items", f"must be a list; {_WANTED}")


def _says_something(document: Document) -> bool:
    """An empty List is an empty cluster; anything else without a Node is another file."""
    return document.body["kind"] not in _LISTS or bool(document.body["items"])
