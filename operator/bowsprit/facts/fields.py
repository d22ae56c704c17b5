"""Reading a config.json field by field: aliases, types and bounds, so that only checked values go on.

Model families name the same quantity differently (num_hidden_layers, n_layer, n_layers). A `Count` holds
the known names and the sane bounds of one quantity; reading it gives a checked value or
raises `Unusable`, whose message names the field, what was found and what is expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from bowsprit.api.reasons import Reason
from bowsprit.facts.model import FactsError

T = TypeVar("T")

_SHOWN = 60
"""Characters of a bad value that a message repeats."""


class Unusable(Exception):
    """The config gives no facts; carries the FactsError that says why. Never leaves this package."""

    def __init__(self, reason: Reason, field: str, message: str) -> None:
        super().__init__(message)
        self.error = FactsError(str(reason), field, message)


def invalid(field: str, found: object, expected: str) -> Unusable:
    return Unusable(Reason.CONFIG_INVALID, field, f"{field} is {shown(found)}; expected {expected}")


def shown(value: object) -> str:
    """A value as JSON, cut to a length that a condition can carry."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number under any of `names` (dots go into nested objects), between the bounds."""

    names: tuple[str, ...]
    maximum: int
    minimum: int = 1

    @property
    def expected(self) -> str:
        return f"a whole number from {self.minimum} to {self.maximum}"


class Fields:
    """One object of the config, read by checked quantities. JSON null reads as absent, as in transformers."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path

    def with_defaults(self, defaults: Mapping[str, Any]) -> Fields:
        """The same object with `defaults` where it says nothing."""
        said = {name: value for name, value in self.values.items() if value is not None}
        return Fields({**defaults, **said}, self._path)

    def path(self, name: str) -> str:
        return f"{self._path}{name}"

    def raw(self, name: str) -> Any:
        """The value at a dotted name, or None when any step is absent."""
        value: Any = self.values
        for step in name.split("."):
            if not isinstance(value, Mapping):
                return None
            value = value.get(step)
        return value

    def get(self, count: Count) -> int | None:
        for name in count.names:
            value = self.raw(name)
            if value is not None:
                return self._checked(name, value, count)
        return None

    def need(self, count: Count) -> int:
        value = self.get(count)
        if value is not None:
            return value
        name, *aliases = count.names
        also = f" (also known as {', '.join(aliases)})" if aliases else ""
        raise Unusable(
            Reason.CONFIG_FIELD_MISSING,
            self.path(name),
            f"config.json has no {self.path(name)}{also}; add it, or set it in architecture.hfOverrides: "
            f"expected {count.expected}",
        )

    def _checked(self, name: str, value: object, count: Count) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not count.minimum <= value <= count.maximum
        ):
            raise invalid(self.path(name), value, count.expected)
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise invalid(self.path(name), value, "true or false")
        return value

    def number(self, name: str) -> float | None:
        """A positive number of at most 1e9."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e9:
            raise invalid(self.path(name), value, "a number above 0 and up to 1e9")
        return float(value)

    def text(self, name: str) -> str | None:
        value = self.raw(name)
        if value is not None and not isinstance(value, str):
            raise invalid(self.path(name), value, "a string")
        return value

    def section(self, name: str) -> Fields | None:
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise invalid(self.path(name), value, "an object")
        return Fields(value, f"{self.path(name)}.")

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; empty when absent."""
        return tuple(self._items(name, str, "a list of strings"))

    def counts(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers (layer indices or switches); empty when absent."""
        return tuple(self._items(name, int, "a list of whole numbers"))

    def _items(self, name: str, kind: type[T], expected: str) -> Iterator[T]:
        value = self.raw(name)
        if value is None:
            return
        if not isinstance(value, list):
            raise invalid(self.path(name), value, expected)
        for item in value:
            if not isinstance(item, kind) or isinstance(item, bool):
                raise invalid(self.path(name), item, f"{expected}; this item is not one")
            yield item
