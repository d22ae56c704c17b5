"""Values out of JSON that foreign code had a hand in: each is checked before it is believed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

_MOST_TEXT = 1000
_MOST_COUNT = 10**15
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")


class Damaged(ValueError):
    """Not what it should be."""


def finite(text: str) -> float:
    """For json.loads (parse_float, parse_constant): NaN and infinity are a ValueError, for JSON has none."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not a finite number")
    return value


def mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Damaged
    return value


def items(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise Damaged
    return value


def text(value: Any) -> str:
    """One line of printable text: it ends up in conditions and on terminals."""
    if not isinstance(value, str):
        raise Damaged
    return _UNPRINTABLE.sub(" ", value)[:_MOST_TEXT].strip()


def is_count(value: Any) -> TypeGuard[int]:
    """A whole number above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_COUNT


def count(value: Any) -> int:
    """A whole number from 0 on."""
    if is_count(value) or (value == 0 and not isinstance(value, bool)):
        return int(value)
    raise Damaged
