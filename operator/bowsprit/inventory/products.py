"""ProductTable: what one GPU of a node is, from its labels, the user's own table, and what is known by name.

In this order: what a label says is taken; what labels lack, the user may declare (for nodes without labels,
and for GPUs whose memory nobody can know, such as GB10); what is still open comes from the product's name,
at last from the instance type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bowsprit.inventory.gpu_types import AMD_DEVICE_IDS, INSTANCE_TYPES, GpuType, compute_capability, gpu_type
from bowsprit.inventory.labels import AMD, AMD_DEVICE_ID, INSTANCE_TYPE_LABELS, capability_of, first
from bowsprit.inventory.left_out import Reason, Why
from bowsprit.inventory.nodes import NodeView


@dataclass(frozen=True, slots=True)
class Declared:
    """One entry of the user's table: the nodes it is for, and what GPUs they have. None leaves it open."""

    node_selector: tuple[tuple[str, str], ...]
    product: str | None = None
    memory_mib: int | None = None
    linked: bool | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.node_selector)


_NOT_DECLARED = Declared(())


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU of a node."""

    product: str
    """"" when nobody says."""
    memory_mib: int
    """0 when nobody says."""
    linked: bool
    capability: int | None = None
    """Compute capability times ten; None when nobody says."""
    reason: Reason | None = None
    """Why a whole GPU of this kind cannot be planned."""
    note: Reason | None = None
    """What was made of a label that cannot be read."""


@dataclass(frozen=True, slots=True)
class ProductTable:
    declared: tuple[Declared, ...] = ()
    """The first entry that matches a node's labels counts."""

    @classmethod
    def of(cls, entries: Iterable[object]) -> ProductTable:
        """From settings: a list of {nodeSelector, product, memoryMiB, linked}.

        Raises ValueError that names the entry, the field and what is expected.
        """
        return cls(tuple(_declared(index, entry) for index, entry in enumerate(entries)))

    def card(self, view: NodeView) -> Card:
        declared = next((entry for entry in self.declared if entry.matches(view.labels)), _NOT_DECLARED)
        inferred = _inferred_product(view)
        product = view.product.value or declared.product or inferred
        known = gpu_type(product, view.product.label if view.product.value else "")
        if known.memory_mib is None and inferred:
            # `V100` alone leaves the memory open; the instance type does not.
            known = gpu_type(inferred)._replace(supported=known.supported)
        memory = _memory_mib(view, declared, known)
        linked = known.linked if declared.linked is None else declared.linked
        reason = _unplannable(view, product, memory, known)
        capability = capability_of(view.labels) or compute_capability(product)
        return Card(product, memory, linked, capability, reason, None if reason else _note(view, memory))


def _inferred_product(view: NodeView) -> str:
    """By AMD's PCI id, else by instance type."""
    if view.resource == AMD:
        by_id = AMD_DEVICE_IDS.get(first(view.labels, AMD_DEVICE_ID).value.lower().removeprefix("0x"))
        if by_id:
            return by_id
    instance = INSTANCE_TYPES.get(first(view.labels, INSTANCE_TYPE_LABELS).value)
    return instance[0] if instance else ""


def _memory_mib(view: NodeView, declared: Declared, known: GpuType) -> int:
    memory = view.memory
    if memory.least_mib:
        return min(max(known.memory_mib or 0, memory.least_mib), memory.most_mib)
    return declared.memory_mib or known.memory_mib or 0


def _unplannable(view: NodeView, product: str, memory: int, known: GpuType) -> Reason | None:
    if not known.supported:
        return Reason(Why.UNSUPPORTED, f"{view.product}: vLLM does not run on this type of GPU", view.whole)
    if memory and product:
        return None
    seen = f"the GPUs are {product}" if product else "no label says which GPUs these are"
    if memory:
        return Reason(Why.PRODUCT_UNKNOWN, f"{seen}; {_declare(view, 'product')}", view.whole)
    lacking = (
        f"{view.memory.unreadable} is not a number of MiB"
        if view.memory.unreadable
        else "no label says their memory"
    )
    why = f"{seen} and {lacking}"
    return Reason(
        Why.MEMORY_UNKNOWN,
        f"{why}; {_declare(view, 'memoryMiB' if product else 'product, memoryMiB')}",
        view.whole,
    )


def _note(view: NodeView, memory: int) -> Reason | None:
    """A label that somebody wrote by hand is not trusted with a unit: 141GB is less than the card has."""
    if not view.memory.unreadable or not view.whole:
        return None
    said = f"{view.memory.unreadable} is not a number of MiB"
    return Reason(
        Why.UNREADABLE, f"{said}; planned with the {memory} MiB that are known or declared of the type"
    )


def _declare(view: NodeView, fields: str) -> str:
    host = view.labels.get("kubernetes.io/hostname", view.name)
    return f"declare {fields} for nodeSelector kubernetes.io/hostname={host} in the operator's products table"


_FIELDS = ("nodeSelector", "product", "memoryMiB", "linked")


def _declared(index: int, entry: object) -> Declared:
    where = f"products[{index}]"
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where} must be a map of {', '.join(_FIELDS)}, not {type(entry).__name__}")
    unknown = sorted(str(key) for key in entry if key not in _FIELDS)
    if unknown:
        raise ValueError(f"{where} has the unknown field {unknown[0]}; its fields are {', '.join(_FIELDS)}")
    selector, product = entry.get("nodeSelector"), entry.get("product")
    memory, linked = entry.get("memoryMiB"), entry.get("linked")
    if (
        not isinstance(selector, Mapping)
        or not selector
        or not all(isinstance(v, str) for v in selector.values())
    ):
        raise ValueError(f"{where}.nodeSelector must name at least one label with its value (text)")
    if product is not None and (not isinstance(product, str) or not product):
        raise ValueError(f"{where}.product must be the name of a GPU type, not {product!r}")
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 1024):
        raise ValueError(f"{where}.memoryMiB must be a whole number of MiB, 1024 or more, not {memory!r}")
    if linked is not None and not isinstance(linked, bool):
        raise ValueError(f"{where}.linked must be true or false, not {linked!r}")
    return Declared(
        tuple(sorted((str(key), value) for key, value in selector.items())), product, memory, linked
    )
