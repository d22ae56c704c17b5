"""What a node's labels say of its GPUs: product, memory and count, in the words of every vendor and cloud.

The device vendors' own labels come first (GPU Feature Discovery, AMD's node labeller), then CoreWeave's,
Karpenter's and GKE's. Labels describe what was there when the labeller ran; how many GPUs there are now
says allocatable only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from bowsprit.inventory.wire import number

NVIDIA = "nvidia.com/gpu"
AMD = "amd.com/gpu"

GFD_PRODUCT = "nvidia.com/gpu.product"
GFD_MEMORY = "nvidia.com/gpu.memory"
GFD_COUNT = "nvidia.com/gpu.count"

_PRODUCTS = {
    NVIDIA: (
        GFD_PRODUCT,
        "gpu.nvidia.com/model",
        "gpu.nvidia.com/class",
        "karpenter.k8s.aws/instance-gpu-name",
        "karpenter.azure.com/sku-gpu-name",
        "cloud.google.com/gke-accelerator",
    ),
    AMD: (
        "amd.com/gpu.product-name",
        "beta.amd.com/gpu.product-name",
        "karpenter.k8s.aws/instance-gpu-name",
        "karpenter.azure.com/sku-gpu-name",
    ),
}
_COUNTS = {
    NVIDIA: (
        GFD_COUNT,
        "gpu.nvidia.com/count",
        "karpenter.k8s.aws/instance-gpu-count",
        "karpenter.azure.com/sku-gpu-count",
    ),
    AMD: ("karpenter.k8s.aws/instance-gpu-count", "karpenter.azure.com/sku-gpu-count"),
}

INSTANCE_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
AMD_DEVICE_ID = ("amd.com/gpu.device-id", "beta.amd.com/gpu.device-id")


class Said(NamedTuple):
    """A label and its value; ("", "") when no label says it."""

    label: str = ""
    value: str = ""

    def __str__(self) -> str:
        return f"{self.label}={self.value}"


UNSAID = Said()


class Memory(NamedTuple):
    """Bounds in MiB of one GPU's memory as a label gives them; (0, 0) when no label can be read.

    A product table may choose within the bounds; without one the lower bound counts.
    """

    least_mib: int = 0
    most_mib: int = 0
    unreadable: str = ""
    """`label=value` of a label that should give the memory and does not."""


UNKNOWN_MEMORY = Memory()


def first(labels: Mapping[str, str], keys: tuple[str, ...]) -> Said:
    """The first of these labels that is there with a value: empty values are common and say nothing."""
    for key in keys:
        value = labels.get(key)
        if value:
            return Said(key, value)
    return UNSAID


def product_of(labels: Mapping[str, str], resource: str) -> Said:
    return first(labels, _PRODUCTS.get(resource, ()))


def count_of(labels: Mapping[str, str], resource: str) -> tuple[str, int | None]:
    """(label, GPUs) by the first count label that holds a number."""
    for key in _COUNTS.get(resource, ()):
        count = number(labels.get(key))
        if count is not None:
            return key, count
    return "", None


def capability_of(labels: Mapping[str, str]) -> int | None:
    """Compute capability times ten, by GPU Feature Discovery."""
    major, minor = (number(labels.get(f"nvidia.com/gpu.compute.{part}")) for part in ("major", "minor"))
    return None if major is None or minor is None or minor > 9 else 10 * major + minor


def memory_of(labels: Mapping[str, str], resource: str) -> Memory:
    unreadable = ""
    for key, read in _MEMORIES.get(resource, ()):
        value = labels.get(key)
        if not value:
            continue
        bounds = read(value)
        if bounds is not None and _LEAST_MIB <= bounds[0] <= _MOST_MIB:
            return Memory(*bounds)
        unreadable = unreadable or f"{key}={value}"
    return Memory(unreadable=unreadable)


_LEAST_MIB, _MOST_MIB = 1024, 4 * 1024 * 1024
"""1 GiB and 4 TiB: no GPU that serves models has less or more, so such a label is in another unit."""

_WHOLE_GIB = re.compile(r"([0-9]{1,5})G(?:B|i|iB)?")


def _mib(value: str) -> tuple[int, int] | None:
    """GPU Feature Discovery: MiB as NVML reports it, exact."""
    mib = number(value)
    return None if mib is None else (mib, mib)


def _nominal_mib(value: str) -> tuple[int, int] | None:
    """Karpenter: the MiB of the data sheet, up to 0.5% above what the driver reports (81920 for 81559)."""
    mib = number(value)
    return None if mib is None else (mib * 99 // 100, mib)


def _thousands_of_mib(value: str) -> tuple[int, int] | None:
    """CoreWeave: MiB / 1000 cut off (81 for 81559)."""
    thousands = number(value)
    return None if thousands is None else (thousands * 1000, thousands * 1000 + 999)


def _rounded_gib(value: str) -> tuple[int, int] | None:
    """AMD: GiB rounded to whole numbers (`191G`), so up to half a GiB may be missing."""
    match = _WHOLE_GIB.fullmatch(value)
    if match is None:
        return None
    mib = int(match[1]) * 1024 - 512
    return mib, mib


_MEMORIES = {
    NVIDIA: (
        (GFD_MEMORY, _mib),
        ("gpu.nvidia.com/vram", _thousands_of_mib),
        ("karpenter.k8s.aws/instance-gpu-memory", _nominal_mib),
    ),
    AMD: (
        ("amd.com/gpu.vram", _rounded_gib),
        ("beta.amd.com/gpu.vram", _rounded_gib),
        ("karpenter.k8s.aws/instance-gpu-memory", _nominal_mib),
    ),
}
