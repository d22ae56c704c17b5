"""Why a node, or a part of it, is not planned on: the reasons as data."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Why(StrEnum):
    """Machine reasons of plan.fleet.LeftOut."""

    # The units are not whole, exclusive GPUs of one known model.
    UNREADABLE = "Unreadable"
    MIG = "MIG"
    SHARED = "Shared"
    PARTITIONED = "Partitioned"
    FRACTIONAL = "Fractional"
    MIXED_MODELS = "MixedModels"
    UNHEALTHY = "Unhealthy"
    NO_DEVICES = "NoDevices"
    OTHER_RESOURCE = "OtherResource"
    """GPUs, or other accelerators, under a resource that Bowsprit does not plan."""

    # Whole GPUs that cannot be planned.
    UNSUPPORTED = "Unsupported"
    MEMORY_UNKNOWN = "MemoryUnknown"
    PRODUCT_UNKNOWN = "ProductUnknown"

    # Whole GPUs of a node that takes no pods now.
    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    TERMINATING = "Terminating"
    WINDOWS = "Windows"


class Reason(NamedTuple):
    why: Why
    message: str
    """User text: what was seen (label, resource or field), and the cure."""
    gpus: int = 0
    """GPUs that are there and not used because of it; 0 where only slices or shares can be counted."""
