"""Every field that the API accepts, as paths: the list that tests hold the renderer and the planner against.

A path is written as users write it, with `[]` for the items of a list: `plugins[].entryPoints[]`. Where the schema is
open (hfOverrides, template.spec) the path of the open object itself is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bowsprit.api.schema import structural
from bowsprit.api.v1alpha1 import ModelDeploymentSpec


def spec_leaves() -> tuple[str, ...]:
    """Paths of all leaves of spec, in schema order."""
    fields = walk(structural(ModelDeploymentSpec))
    return tuple(path for path, schema in fields if _is_open(schema) or not _children(path, schema))


def walk(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every path below a structural schema with the schema that stands there, parents first."""
    for child_path, child in _children(path, schema):
        yield child_path, child
        if not _is_open(child):
            yield from walk(child, child_path)


def walk_named(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """As walk(), and on into what is named inside open objects because a rule looks at it."""
    for child_path, child in _children(path, schema):
        yield child_path, child
        yield from walk_named(child, child_path)


def _is_open(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def _children(path: str, schema: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    if schema.get("type") == "array":
        return [(f"{path}[]", schema.get("items", {}))]
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    return [(f"{path}.{name}" if path else name, child) for name, child in properties.items()]
