"""Would the API server take this object? The CRD's own schema and CEL rules, evaluated here for the CLI.

One source: what is checked is openapi_schema() itself, in the two steps of the API server: first the schema, then,
only when that holds, the rules. So `bowsprit plan -f` refuses a file with the same words as `kubectl apply`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from cel_expr_python import cel

from bowsprit.api.base import RULES
from bowsprit.api.crd import openapi_schema
from bowsprit.api.v1alpha1 import API_VERSION, KIND

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_NOUNS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


class Problem(NamedTuple):
    field: str
    """Path in the object, such as spec.engine.args[2]; empty for the object itself."""
    message: str
    """User text: what is wrong and what to do."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def validate(manifest: Any) -> list[Problem]:
    """Everything that is wrong with a ModelDeployment as read from YAML or JSON; empty when nothing is."""
    if not isinstance(manifest, Mapping):
        return [Problem("", f"a ModelDeployment is an object, not {_kind_of(manifest)}")]
    schema = _schema()
    given = _without_nulls(schema, {key: value for key, value in manifest.items() if key != "status"})
    problems = [*_head(manifest), *_schema_problems(schema, given, "")]
    return problems or list(_rule_problems(schema, _declared(schema, given), ""))


def _head(manifest: Mapping[Any, Any]) -> Iterator[Problem]:
    for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if manifest.get(field) != wanted:
            yield Problem(field, f"must be {wanted}, not {_shown(manifest.get(field))}")
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        yield Problem("metadata.name", "must be given, and be a text")


def _without_nulls(schema: Mapping[str, Any], value: Any) -> Any:
    """The API server drops `field: null` before it looks further, except inside open objects."""
    if isinstance(value, list):
        return [_without_nulls(schema.get("items", {}), entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    known = schema.get("properties", {})
    other = schema.get("additionalProperties")
    return {
        name: _without_nulls(known.get(name, other) or {}, child)
        for name, child in value.items()
        if child is not None or known.get(name, other) is None
    }


@cache
def _schema() -> dict[str, Any]:
    return openapi_schema()


# ---- the schema ------------------------------------------------------------------------------------------------------


def _schema_problems(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Problem]:
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield Problem(path, f"must be a whole number or a text, not {_kind_of(value)}")
            return
    elif not _has_type(value, schema.get("type")):
        hint = ": put it into quotes" if schema["type"] == "string" and isinstance(value, bool) else ""
        yield Problem(path, f"must be {_NOUNS[schema['type']]}, not {_kind_of(value)}{hint}")
        return
    if "enum" in schema and value not in schema["enum"]:
        yield Problem(path, f"must be one of {', '.join(schema['enum'])}, not {_shown(value)}")
    yield from (Problem(path, message) for message in _bound_problems(schema, value))
    if isinstance(value, list):
        yield from _list_problems(schema, value, path)
    elif isinstance(value, Mapping):
        yield from _object_problems(schema, value, path)


def _has_type(value: Any, name: str | None) -> bool:
    if name is None:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, _TYPES[name])


def _bound_problems(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield f"must be at least {schema['minimum']}, not {value}"
        if value > schema.get("maximum", value):
            yield f"must be at most {schema['maximum']}, not {value}"
        return
    for noun, least, most in (
        ("characters", "minLength", "maxLength"),
        ("entries", "minItems", "maxItems"),
        ("entries", "minProperties", "maxProperties"),
    ):
        if isinstance(value, str | list | Mapping):
            size = len(value)
            if size < schema.get(least, size):
                yield f"must have at least {schema[least]} {noun}, not {size}"
            if size > schema.get(most, size):
                yield f"must have at most {schema[most]} {noun}, not {size}"


def _list_problems(schema: Mapping[str, Any], value: list[Any], path: str) -> Iterator[Problem]:
    items = schema.get("items", {})
    for index, entry in enumerate(value):
        yield from _schema_problems(items, entry, f"{path}[{index}]")
    for index, entry in enumerate(_identities(schema, value)):
        if entry in _identities(schema, value)[:index]:
            yield Problem(f"{path}[{index}]", f"{_shown(entry)} stands there twice")


def _identities(schema: Mapping[str, Any], value: list[Any]) -> list[Any]:
    """What must differ between the items of a list: nothing in an ordinary one."""
    if schema.get("x-kubernetes-list-type") == "set":
        return value
    (key,) = schema.get("x-kubernetes-list-map-keys", (None,))
    return [entry[key] for entry in value if isinstance(entry, Mapping) and key in entry]


def _object_problems(schema: Mapping[str, Any], value: Mapping[Any, Any], path: str) -> Iterator[Problem]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Problem(_join(path, name), "must be given")
    for name, child in value.items():
        if not isinstance(name, str):
            yield Problem(path, f"the key {_shown(name)} must be a text: put it into quotes")
        elif name in properties:
            yield from _schema_problems(properties[name], child, _join(path, name))
        elif "additionalProperties" in schema:
            yield from _schema_problems(schema["additionalProperties"], child, _join(path, name))
        elif path != "metadata" and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield Problem(_join(path, name), f"unknown field; known are {', '.join(sorted(properties))}")


# ---- the rules -------------------------------------------------------------------------------------------------------


def _declared(schema: Mapping[str, Any], value: Any) -> Any:
    """What rules can see: of an open object only the fields that its schema names."""
    if isinstance(value, list):
        return [_declared(schema.get("items", {}), entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    inner = {
        name: schema.get("properties", {}).get(name, schema.get("additionalProperties")) for name in value
    }
    return {name: _declared(inner[name], child) for name, child in value.items() if inner[name] is not None}


def _rule_problems(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Problem]:
    for entry in schema.get(RULES, ()):
        if not _holds(entry["rule"], value):
            yield Problem((path + entry.get("fieldPath", "")).lstrip("."), entry["message"])
    if isinstance(value, list):
        for index, child in enumerate(value):
            yield from _rule_problems(schema.get("items", {}), child, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name, child in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            yield from _rule_problems(inner, child, _join(path, name))


def _holds(expression: str, value: Any) -> bool:
    return _holds_for_text(expression, value) if isinstance(value, str) else _evaluated(expression, value)


@lru_cache(maxsize=8192)
def _holds_for_text(expression: str, text: str) -> bool:
    """Remembered: many models give the same flags, and each evaluation compiles its pattern anew."""
    return _evaluated(expression, text)


def _evaluated(expression: str, value: Any) -> bool:
    result = _compiled(expression).eval(data={"self": value}).value()
    if not isinstance(result, bool):
        raise AssertionError(f"{expression} gave {result!r} for {value!r}")
    return result


@cache
def _compiled(expression: str) -> cel.Expression:
    return _environment().compile(expression)


@cache
def _environment() -> cel.Env:
    return cel.NewEnv(variables={"self": cel.Type.DYN})


# ---- words -----------------------------------------------------------------------------------------------------------


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {_shown(value)}"
    if isinstance(value, str):
        return f"the text {_shown(value)}"
    return (
        "a list"
        if isinstance(value, list)
        else "an object"
        if isinstance(value, Mapping)
        else type(value).__name__
    )


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
