"""`--layouts FILE`: the user's own measured table, in place of the memory model.

    {"llama": {"NVIDIA-A100-80GB-PCIe": [{"tensor": 1, "minPipeline": 3}, {"tensor": 2, "minPipeline": 2}]}}

A key is a model's name, or namespace/name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bowsprit.cli.documents import read_files
from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.plan.key import ModelKey
from bowsprit.plan.wish import MeasuredLayout

Table = Mapping[str, tuple[MeasuredLayout, ...]]
"""By GPU product."""

_LARGEST = 4096
_FIELDS = {"tensor", "minPipeline"}


class Layouts:
    """Tables by the model's name."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables

    def of(self, key: ModelKey) -> Table | None:
        return self._tables.get(str(key)) or self._tables.get(key.name)

    def unused(self, keys: list[ModelKey]) -> list[str]:
        """Names in the file that no model has."""
        known = {str(key) for key in keys} | {key.name for key in keys}
        return sorted(set(self._tables) - known)


NO_LAYOUTS = Layouts({})


def read_layouts(path: str) -> Layouts:
    """Raises BadInput with every fault of the file."""
    read = read_files([path])
    problems = list(read.problems)
    if not problems and len(read.documents) != 1:
        problems.append(Problem(Place(path), "", "must be one JSON object"))
    for document in read.documents:
        problems += (Problem(document.place, field, message) for field, message in _faults(document.body))
    if problems:
        raise BadInput(problems)
    return Layouts(
        {
            model: {product: tuple(map(_row, rows)) for product, rows in products.items()}
            for model, products in read.documents[0].body.items()
        }
    )


def _row(row: Mapping[str, int]) -> MeasuredLayout:
    return MeasuredLayout(row["tensor"], row["minPipeline"])


def _faults(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for model, products in body.items():
        if not isinstance(products, dict) or not products:
            yield model, "must be an object: GPU product -> list of {tensor, minPipeline}"
            continue
        for product, rows in products.items():
            field = f"{model}[{product}]"
            if not isinstance(rows, list):
                yield field, "must be a list of {tensor, minPipeline}; [] says that the model does not fit"
                continue
            for index, row in enumerate(rows):
                yield from _row_faults(f"{field}[{index}]", row)


def _row_faults(field: str, row: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(row, dict) or set(row) != _FIELDS:
        yield field, "must be {tensor, minPipeline}, both and nothing else"
        return
    for name, value in row.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
            yield f"{field}.{name}", f"must be a whole number from 1 to {_LARGEST}, not {value!r}"
