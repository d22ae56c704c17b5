"""Structural schemas (apiextensions v1) out of pydantic models.

pydantic writes JSON Schema with references, titles, defaults and `anyOf: [..., null]`; the API server takes none of
these. Here everything is inlined, and what only Kubernetes knows (list types, CEL rules) comes along from the models'
own annotations (base.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

_DROPPED = ("$defs", "title", "default")
_KEYED = ("properties",)
"""Keywords whose keys are the user's words and not the schema's."""
_PLAIN = ("enum", "required", "x-kubernetes-validations", "x-kubernetes-list-map-keys")
"""Keywords whose value is no schema."""


def structural(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model, with the documentation keywords of base.py still in it."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    result = _structural(schema, schema.get("$defs", {}))
    assert isinstance(result, dict)
    return result


def without(schema: Any, keywords: tuple[str, ...]) -> Any:
    """The schema less some keywords, at every depth."""
    if isinstance(schema, list):
        return [without(entry, keywords) for entry in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: without(child, keywords) for name, child in value.items()}
        if key in _KEYED
        else without(value, keywords)
        for key, value in schema.items()
        if key not in keywords
    }


def _structural(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    schema = _flat(schema, definitions)
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _KEYED:
            result[key] = {name: _structural(child, definitions) for name, child in value.items()}
        elif key == "additionalProperties" and not isinstance(value, Mapping):
            continue  # pydantic's extra="forbid": the API server prunes, or refuses, by itself
        elif key in _PLAIN or key == "anyOf":
            result[key] = value
        elif key not in _DROPPED:
            result[key] = _structural(value, definitions)
    return result


def _flat(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Follow `$ref` and `anyOf: [schema, null]`, with what stands beside them put on top; rules add up."""
    beside = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
    if "$ref" in schema:
        inner = definitions[schema["$ref"].rsplit("/", 1)[1]]
    elif _is_optional(schema):
        inner = next(option for option in schema["anyOf"] if option != {"type": "null"})
    else:
        return dict(schema)
    inner = _flat(inner, definitions)
    rules = [*inner.get("x-kubernetes-validations", ()), *beside.get("x-kubernetes-validations", ())]
    return {**inner, **beside, **({"x-kubernetes-validations": rules} if rules else {})}


def _is_optional(schema: Mapping[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())
