"""NodeView: everything that planning needs to know of one node, without its pods.

Projected from a v1 Node once, when the node changes. What the labels leave open (memory of a known product, a
table of the user's) is filled in later by `products.ProductTable`, so a view does not depend on any setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from bowsprit.api.pod_requests import amount
from bowsprit.inventory import wire
from bowsprit.inventory.labels import (
    AMD,
    NVIDIA,
    UNKNOWN_MEMORY,
    UNSAID,
    Memory,
    Said,
    count_of,
    memory_of,
    product_of,
)
from bowsprit.inventory.left_out import Reason, Why
from bowsprit.inventory.whole_gpus import Offer, mig_beside, not_whole
from bowsprit.plan.fleet import Taint


@dataclass(frozen=True, slots=True)
class NodeView:
    name: str
    resource: str = ""
    """nvidia.com/gpu or amd.com/gpu; "" when the node has neither."""
    product: Said = UNSAID
    """GPU type and the label that says it; without the sharing suffix."""
    memory: Memory = UNKNOWN_MEMORY
    """MiB of one GPU as the labels say it."""
    units: int = 0
    """What `resource` offers in allocatable: GPUs, slices or shares."""
    whole: int = 0
    """How many of the units are whole, exclusive GPUs."""
    labels: Mapping[str, str] = field(default_factory=lambda: wire.NOTHING, hash=False)
    taints: tuple[Taint, ...] = ()
    """NoSchedule and NoExecute taints."""
    ready: bool = True
    architecture: str = "amd64"
    offers: Mapping[str, int] = field(default_factory=lambda: wire.NOTHING, hash=False)
    """Allocatable of everything but `resource`, in the units of api.pod_requests."""
    reasons: tuple[Reason, ...] = ()
    """Why nothing is planned here; the first is the weightiest."""
    partly: tuple[Reason, ...] = ()
    """Why a part of it is not used."""


def node_facts(node: Mapping[str, Any]) -> NodeView:
    """Project a v1 Node. Never raises: what is missing or of a wrong type reads as empty."""
    metadata, spec, status = _parts(node)
    offer = _offer(metadata, status)
    kind = not_whole(offer)
    mixed = kind is not None and kind.why is Why.MIXED_MODELS
    whole = offer.units if kind is None or kind.why is Why.UNSUPPORTED else 0
    ready = _ready(status)
    reasons: tuple[Reason, ...] = (kind,) if kind else ()
    if kind or whole:
        reasons += _away(node, offer.labels, whole)
    missing = _missing(offer) if whole else 0
    return NodeView(
        name=wire.text(metadata.get("name")),
        resource=offer.resource,
        product=UNSAID if mixed else _bare(offer.product),
        memory=UNKNOWN_MEMORY if mixed else memory_of(offer.labels, offer.resource),
        units=offer.units,
        whole=whole,
        labels=offer.labels,
        taints=_taints(spec),
        ready=ready,
        architecture=_machine(offer.labels, status, "architecture", "kubernetes.io/arch") or "amd64",
        offers=_offers(status, offer.resource),
        reasons=reasons,
        partly=_partly(offer, whole, missing),
    )


def _offer(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> Offer:
    labels = wire.labels(metadata.get("labels"))
    capacity = wire.mapping(status.get("capacity"))
    # The API server fills a missing allocatable with the capacity.
    allocatable = wire.mapping(status.get("allocatable", capacity))
    resource = _resource(allocatable, capacity)
    units = wire.units(allocatable.get(resource, 0)) if resource else 0
    unreadable = "" if units is not None else f"{resource}: {str(allocatable.get(resource))[:64]!r}"
    units = units or 0
    product = product_of(labels, resource) if resource else _any_product(labels)
    count_label, counted = count_of(labels, resource or NVIDIA)
    return Offer(
        labels=labels,
        annotations=wire.labels(metadata.get("annotations")),
        resource=resource,
        units=units,
        capacity=max(units, wire.units(capacity.get(resource, 0)) or 0) if resource else 0,
        unreadable=unreadable,
        others=_others(allocatable, resource),
        product=product,
        count_label=count_label,
        counted=counted,
    )


def _offers(status: Mapping[str, Any], resource: str) -> dict[str, int]:
    allocatable = wire.mapping(status.get("allocatable", status.get("capacity")))
    return {
        intern(name): units
        for name, quantity in allocatable.items()
        if isinstance(name, str) and name != resource and (units := amount(name, quantity)) is not None
    }


def _resource(allocatable: Mapping[str, Any], capacity: Mapping[str, Any]) -> str:
    """The planned resource with units; else one that is at least named."""
    named = [resource for resource in (NVIDIA, AMD) if resource in allocatable or resource in capacity]
    offered = [resource for resource in named if allocatable.get(resource, 0) not in (0, "0")]
    return next(iter(offered or named), "")


def _any_product(labels: Mapping[str, str]) -> Said:
    said = product_of(labels, NVIDIA)
    return said if said.value else product_of(labels, AMD)


_ACCELERATORS = (
    "nvidia.com/",
    "amd.com/",
    "gpu.intel.com/",
    "habana.ai/",
    "aws.amazon.com/neuron",
    "google.com/tpu",
    "huawei.com/",
    "volcano.sh/vgpu",
    "cambricon.com/",
    "hygon.com/",
    "metax-tech.com/",
    "iluvatar.",
    "mthreads.com/",
    "qualcomm.com/",
    "tenstorrent.com/",
)
_NOT_DEVICES = ("monitoring", "hostdev", "rdma", "roce", "sriov", "nic")


def _others(allocatable: Mapping[Any, Any], resource: str) -> dict[str, int]:
    """Other accelerators on offer; NVIDIA's network devices and Intel's monitoring handles are none."""
    found = {}
    for name, value in allocatable.items():
        if not isinstance(name, str) or name == resource or not name.startswith(_ACCELERATORS):
            continue
        units = wire.units(value)
        if units and not any(word in name for word in _NOT_DEVICES):
            found[name] = units
    return found


def _missing(offer: Offer) -> int:
    """Whole GPUs that the kubelet or the labels know of and that are not allocatable."""
    counted = 0 if mig_beside(offer) else offer.counted or 0
    return max(offer.capacity, counted) - offer.units


def _partly(offer: Offer, whole: int, missing: int) -> tuple[Reason, ...]:
    if not whole:
        return ()
    found = []
    if missing:
        known = offer.units + missing
        found.append(
            Reason(
                Why.UNHEALTHY,
                f"{missing} of {known} GPUs are not allocatable ({offer.resource}: {offer.units}): "
                "unhealthy or lost; look at the device plugin's log and at the driver on the node",
                missing,
            )
        )
    mig = mig_beside(offer)
    if mig is not None:
        found.append(mig)
    return tuple(found)


def _bare(product: Said) -> Said:
    """The product that a sharing suffix was put on; a layout that is no layout names no product."""
    if "-MIG-INVALID" in product.value:
        return UNSAID
    return product._replace(value=product.value.removesuffix("-SHARED"))


def _away(node: Mapping[str, Any], labels: Mapping[str, str], gpus: int) -> tuple[Reason, ...]:
    """Why the node takes no pods now, whatever its GPUs are."""
    metadata, spec, status = _parts(node)
    found = []
    if metadata.get("deletionTimestamp"):
        found.append(Reason(Why.TERMINATING, "the node is being deleted", gpus))
    if _machine(labels, status, "operatingSystem", "kubernetes.io/os") == "windows":
        found.append(Reason(Why.WINDOWS, "kubernetes.io/os=windows: engine images are for Linux", gpus))
    if not _ready(status):
        found.append(
            Reason(Why.NOT_READY, "the node's Ready condition is not True; see kubectl describe node", gpus)
        )
    if spec.get("unschedulable") is True:
        cure = f"kubectl uncordon {wire.text(metadata.get('name'))}"
        found.append(
            Reason(Why.CORDONED, f"the node is cordoned (spec.unschedulable); {cure} to use it", gpus)
        )
    return tuple(found)


def _parts(node: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    """metadata, spec and status."""
    return (
        wire.mapping(node.get("metadata")),
        wire.mapping(node.get("spec")),
        wire.mapping(node.get("status")),
    )


def _ready(status: Mapping[str, Any]) -> bool:
    """No Ready condition at all is a file written by hand: a new node has the not-ready taint."""
    for condition in wire.mappings(status.get("conditions")):
        if condition.get("type") == "Ready":
            return condition.get("status") == "True"
    return True


def _machine(labels: Mapping[str, str], status: Mapping[str, Any], field_name: str, label: str) -> str:
    return wire.text(wire.mapping(status.get("nodeInfo")).get(field_name)) or labels.get(label, "")


def _taints(spec: Mapping[str, Any]) -> tuple[Taint, ...]:
    return tuple(
        Taint(
            wire.text(taint.get("key")),
            wire.label_text(taint.get("value")) or "",
            wire.text(taint.get("effect")),
        )
        for taint in wire.mappings(spec.get("taints"))
        if taint.get("effect") in ("NoSchedule", "NoExecute")
    )
