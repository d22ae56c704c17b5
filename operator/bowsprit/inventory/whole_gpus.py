"""Are the units that a node offers whole, exclusive GPUs of one model?

Device plugins sell slices (MIG), shares (time-slicing, MPS, vGPU, HAMi) and partitions (AMD) under the
names of whole GPUs. Tensor parallelism over those fails or puts several ranks on one card, so planning
wants whole GPUs only. Each check looks for one way of not being whole and answers with the reason, or None;
the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bowsprit.inventory.gpu_types import INSTANCE_TYPES
from bowsprit.inventory.labels import GFD_COUNT, INSTANCE_TYPE_LABELS, NVIDIA, Said, first
from bowsprit.inventory.left_out import Reason, Why
from bowsprit.inventory.wire import number


class Offer(NamedTuple):
    """What a node says of its accelerators, before anything is concluded from it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    resource: str
    """The planned resource that it has, or ""."""
    units: int
    """Allocatable."""
    capacity: int
    """At least `units`: the difference are devices that the plugin calls unhealthy."""
    unreadable: str
    """`resource: value` of a quantity that is no number, or ""."""
    others: Mapping[str, int]
    """Accelerators under other resource names, with more than 0 units."""
    product: Said
    count_label: str
    counted: int | None
    """GPUs by the label `count_label`."""


def not_whole(offer: Offer) -> Reason | None:
    for check in _CHECKS:
        reason = check(offer)
        if reason is not None:
            return reason
    return None


def mig_beside(offer: Offer) -> Reason | None:
    """With MIG mixed, whole GPUs keep the plain resource name: they are used, the sliced ones are not."""
    slices = _slices(offer)
    if not slices or not offer.units:
        return None
    gpus = max(0, (offer.counted or 0) - offer.capacity)
    return Reason(
        Why.MIG,
        f"beside {offer.units} whole GPUs there are MIG slices ({slices}), which are not planned",
        gpus,
    )


def _unreadable(offer: Offer) -> Reason | None:
    if not offer.unreadable:
        return None
    return Reason(Why.UNREADABLE, f"status.allocatable has {offer.unreadable}, which is not a number of GPUs")


_MIG_CURE = "set the node label nvidia.com/mig.config=all-disabled to have whole GPUs"
_MIG_CONFIG = re.compile(r"all-[0-9]g\..+")
_MIG_RESOURCE = "nvidia.com/mig-"


def _slices(offer: Offer) -> str:
    if not offer.others:
        return ""
    return ", ".join(
        f"{name}: {n}" for name, n in sorted(offer.others.items()) if name.startswith(_MIG_RESOURCE)
    )


def _mig(offer: Offer) -> Reason | None:
    labels, product = offer.labels, offer.product
    if "-MIG-INVALID" in product.value:
        said = f"{product}: the MIG layout of this node does not fit its strategy"
        return Reason(Why.MIG, f"{said}; {_MIG_CURE}, or use nvidia.com/mig.strategy=mixed")
    if "-MIG-" in product.value:
        said = f"{product}: the {offer.units} units of {offer.resource} are MIG slices"
        return Reason(Why.MIG, f"{said}, and a model cannot span slices; {_MIG_CURE}")
    partition = labels.get("cloud.google.com/gke-gpu-partition-size")
    if partition:
        said = f"cloud.google.com/gke-gpu-partition-size={partition}: the units are MIG slices"
        return Reason(Why.MIG, f"{said}; use a node pool without GPU partitions")
    slices = _slices(offer)
    if slices and not offer.units:
        said = f"all GPUs are MIG slices ({slices}) and {NVIDIA} is 0"
        return Reason(Why.MIG, f"{said}; {_MIG_CURE}", offer.counted or 0)
    config = labels.get("nvidia.com/mig.config", "")
    failed = labels.get("nvidia.com/mig.config.state") == "failed"
    if offer.units and not slices and not failed and _MIG_CONFIG.fullmatch(config):
        return Reason(Why.MIG, f"nvidia.com/mig.config={config}: the GPUs are cut into slices; {_MIG_CURE}")
    return None


_VGPU = re.compile(r".+-[0-9]+[ABCQ]")
_GKE_SHARING = (
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-max-shared-clients-per-gpu",
)


def _shared(offer: Offer) -> Reason | None:
    sign = _sharing_label(offer) or _sharing_resource(offer)
    if not sign:
        return None
    return Reason(
        Why.SHARED,
        f"{sign}: GPUs are shared between pods, and two ranks of a model may meet on one card; "
        "turn sharing off on this node to have whole GPUs",
        0 if "-MIG" in offer.product.value else offer.counted or 0,
    )


def _sharing_label(offer: Offer) -> str:
    labels = offer.labels
    if offer.product.value.endswith("-SHARED") or _VGPU.fullmatch(offer.product.value):
        return f"{offer.product}"
    replicas = number(labels.get("nvidia.com/gpu.replicas"))
    if replicas is not None and replicas > 1:
        return f"nvidia.com/gpu.replicas={replicas}"
    strategy = labels.get("nvidia.com/gpu.sharing-strategy", "")
    if strategy not in ("", "none"):
        return f"nvidia.com/gpu.sharing-strategy={strategy}"
    if labels.get("nvidia.com/vgpu.present") == "true":
        return "nvidia.com/vgpu.present=true"
    gke = first(labels, _GKE_SHARING)
    return str(gke) if gke.value else ""


def _sharing_resource(offer: Offer) -> str:
    for key in offer.annotations:
        if key.startswith("hami.io/node-") and key.endswith("register"):
            return f"annotation {key} (HAMi)"
    for name, units in sorted(offer.others.items()):
        if name.endswith(".shared") or name == "nvidia.com/gpumem":
            return f"resource {name}: {units}"
    instance = first(offer.labels, INSTANCE_TYPE_LABELS)
    label, count = offer.count_label, offer.counted
    if not label and instance.value in INSTANCE_TYPES:
        label, count = str(instance), INSTANCE_TYPES[instance.value][1]
    if count and label != GFD_COUNT and offer.capacity > count:
        return f"{offer.resource}: {offer.capacity}, where {label} has {count}"
    return ""


_AMD_PARTITION_LABELS = ("amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition")
_AMD_PARTITION_RESOURCE = re.compile(r"amd\.com/[a-z]+_nps[0-9]+")


def _partitioned(offer: Offer) -> Reason | None:
    said = first(offer.labels, _AMD_PARTITION_LABELS)
    sign = str(said) if said.value and not said.value.lower().startswith("spx") else ""
    for name, units in sorted(offer.others.items()):
        if not sign and not offer.units and _AMD_PARTITION_RESOURCE.fullmatch(name):
            sign = f"resource {name}: {units}"
    if not sign:
        return None
    cure = "set the compute partition to SPX to have whole GPUs"
    return Reason(Why.PARTITIONED, f"{sign}: the units are compute partitions of GPUs; {cure}")


def _fractional(offer: Offer) -> Reason | None:
    if offer.capacity or offer.counted != 0 or not offer.product.value:
        return None
    return Reason(
        Why.FRACTIONAL,
        f"{offer.count_label}=0 beside {offer.product}: the machine has a fraction of a GPU "
        "and offers no whole one; use an instance type with whole GPUs",
    )


def _mixed_models(offer: Offer) -> Reason | None:
    """GFD counts the GPUs of one model; more devices than that are of other models, nobody says which."""
    if offer.count_label != GFD_COUNT or not offer.counted or offer.capacity <= offer.counted:
        return None
    product = offer.product.value or "one model"
    return Reason(
        Why.MIXED_MODELS,
        f"{GFD_COUNT} counts {offer.counted} of {product}, but the node has {offer.resource}: "
        f"{offer.capacity}: GPUs of several models in one node cannot be told apart; "
        "let the device plugin offer one model only",
        offer.units,
    )


def _none_healthy(offer: Offer) -> Reason | None:
    if offer.units or not offer.capacity:
        return None
    return Reason(
        Why.UNHEALTHY,
        f"{offer.resource}: capacity {offer.capacity}, allocatable 0: no device is healthy; "
        "look at the device plugin's log and at the driver on the node",
        offer.capacity,
    )


def _other_resource(offer: Offer) -> Reason | None:
    if offer.units or not offer.others:
        return None
    seen = ", ".join(f"{name}: {units}" for name, units in sorted(offer.others.items()))
    return Reason(Why.OTHER_RESOURCE, f"{seen}: left alone, Bowsprit plans nvidia.com/gpu and amd.com/gpu")


def _no_devices(offer: Offer) -> Reason | None:
    sign = str(offer.product) if offer.product.value else ""
    if not sign and offer.labels.get("nvidia.com/gpu.present") == "true":
        sign = "nvidia.com/gpu.present=true"
    if offer.units or not sign:
        return None
    return Reason(
        Why.NO_DEVICES,
        f"{sign}, but the node offers no {offer.resource or NVIDIA}: is the device plugin running there?",
        offer.counted or 0,
    )


_LEAST_COMPUTE = 7


def _too_old(offer: Offer) -> Reason | None:
    major = number(offer.labels.get("nvidia.com/gpu.compute.major"))
    if not offer.units or major is None or major >= _LEAST_COMPUTE:
        return None
    return Reason(
        Why.UNSUPPORTED,
        f"nvidia.com/gpu.compute.major={major}: vLLM needs compute capability {_LEAST_COMPUTE}.0 or more",
        offer.units,
    )


_CHECKS: tuple[Callable[[Offer], Reason | None], ...] = (
    _unreadable,
    _mig,
    _shared,
    _partitioned,
    _fractional,
    _mixed_models,
    _none_healthy,
    _other_resource,
    _no_devices,
    _too_old,
)
