"""Numbers and names as user text has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 3


def short(product: str) -> str:
    """A GPU type without its maker: A100-80GB-PCIe."""
    return product.removeprefix("NVIDIA-").removeprefix("AMD_Instinct_").removesuffix("_OAM")


def count(number: int, noun: str) -> str:
    """1 GPU, 2 GPUs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(parts: Iterable[str], shown: int = SHOWN) -> str:
    """The first few, and how many more there are."""
    everything: Sequence[str] = list(parts)
    if len(everything) <= shown + 1:
        return ", ".join(everything)
    return ", ".join(everything[:shown]) + f" and {len(everything) - shown} more"


def gib(size: float) -> str:
    """Bytes as GiB: 262 GiB, 7.4 GiB."""
    value = size / 2**30
    return f"{value:.0f} GiB" if value >= 100 else f"{value:.1f} GiB"
