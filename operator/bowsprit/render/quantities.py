"""Kubernetes quantities of bytes, as far as the API has them (shared memory, CPU offload)."""

from __future__ import annotations

import re
from decimal import Decimal

_SUFFIXES = {
    "": 1,
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip
_QUANTITY = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?", re.ASCII)
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")


def parse_bytes(text: str) -> int | None:
    """Bytes, rounded down; None when `text` is not a quantity of bytes (`8Gi`, `500M`, `1073741824`)."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return None
    return int(Decimal(match[1]) * _SUFFIXES[match[2] or ""])


def canonical_bytes(text: str) -> str:
    """The shortest exact binary spelling: `10240Mi` is `10Gi`. What is not a quantity stays as it is."""
    number = parse_bytes(text)
    if not number:
        return text
    suffix = next((suffix for suffix in _BINARY if number % _SUFFIXES[suffix] == 0), "")
    return f"{number // _SUFFIXES[suffix]}{suffix}"
