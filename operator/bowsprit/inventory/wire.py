"""Total readers of wire objects: Kubernetes JSON in which any value may be missing or of another type.

Every reader answers with an empty value of the asked-for type instead of raising, so that one odd object
never stops the reading of the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from sys import intern
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[Any, Any] = MappingProxyType({})

MOST_UNITS = 100_000
"""More devices than this on one node is a misreading, not a machine."""

_QUANTITY = re.compile(r"([0-9]{1,9})(k?)")


def mapping(value: object) -> Mapping[Any, Any]:
    # Exact dicts first: the check against the abstract class costs more than all the rest.
    return value if type(value) is dict or isinstance(value, Mapping) else NOTHING


def mappings(value: object) -> Sequence[Mapping[str, Any]]:
    """The mappings in a list; whatever else it holds is skipped."""
    if not value or not isinstance(value, list | tuple):
        return ()
    return [entry for entry in value if type(entry) is dict or isinstance(entry, Mapping)]


def text(value: object) -> str:
    """A string, interned: names, keys and values repeat over thousands of objects."""
    return intern(value) if type(value) is str else ""


def label_text(value: object) -> str | None:
    """A label's value. Files written by hand say `8` or `true` without quotes; other types are no labels."""
    if type(value) is str:
        return intern(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) < 10**18:
        return str(value)
    return None


def labels(value: object) -> dict[str, str]:
    return {
        intern(key): read
        for key, entry in mapping(value).items()
        if type(key) is str and (read := label_text(entry)) is not None
    }


def units(value: object) -> int | None:
    """A quantity of an extended resource; None when it is not a whole number of 0 to 100,000."""
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value.strip())
        value = int(match[1]) * (1000 if match[2] else 1) if match else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_UNITS:
        return None
    return value


def number(value: str | None) -> int | None:
    """A label that should hold a plain whole number."""
    return int(value) if value and len(value) < 10 and value.isascii() and value.isdigit() else None
