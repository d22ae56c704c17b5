"""What the API models are made of: the base class, validation rules, and the words that several fields share.

A rule is written once, as CEL with its message, on the field or class that it judges. The CRD carries it to the API
server (schema.py), and the CLI evaluates the very same text (validate.py): the two cannot drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, JsonValue
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

RULES = "x-kubernetes-validations"
"""Schema keyword of the CEL rules."""
UNIT = "x-unit"
"""Unit of a number, for the reference page; taken out of the CRD."""
EXAMPLE = "x-example"
"""Example value in YAML, for the reference page; taken out of the CRD."""
DOC_KEYWORDS = (UNIT, EXAMPLE)


Rule = dict[str, JsonValue]
"""An entry of x-kubernetes-validations."""


class ApiModel(BaseModel):
    """camelCase on the wire; unknown fields are refused by the CLI and pruned by the API server."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Schema:
    """Further schema keywords of a field or item: those that only Kubernetes knows, and the page's own."""

    keywords: Mapping[str, Any] = field(hash=False)

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(core_schema), **self.keywords}


def rule(cel: str, message: str, field_path: str | None = None) -> Rule:
    """One CEL rule. `message` names the field and the cure; `field_path` points into an object, as `.image`."""
    entry: Rule = {"rule": cel, "message": message}
    return entry if field_path is None else {**entry, "fieldPath": field_path}


def rules(*entries: Rule) -> Schema:
    """The rules of a field or of a list's items."""
    return Schema({RULES: list(entries)})


def class_rules(*entries: Rule) -> ConfigDict:
    """The rules of a whole object: `model_config = class_rules(...)`; pydantic merges it with the base's."""
    return ConfigDict(json_schema_extra={RULES: list(entries)})


def matches(pattern: str, message: str) -> Schema:
    """The text must match `pattern` (RE2, anchored by the caller)."""
    return rules(rule(f"self.matches({quoted(pattern)})", message))


def quoted(text: str) -> str:
    """A CEL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def example(value: str, unit: str | None = None) -> Schema:
    """What the reference page shows beside a field."""
    return Schema({EXAMPLE: value} if unit is None else {EXAMPLE: value, UNIT: unit})


ATOMIC = Schema({"x-kubernetes-list-type": "atomic"})
"""An ordered list: server-side apply replaces it whole."""
SET = Schema({"x-kubernetes-list-type": "set"})
"""The API server refuses duplicates."""


def keyed_by(key: str) -> Schema:
    """A list whose items are told apart by one field, which no two of them share."""
    return Schema({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})


OPEN_OBJECT: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    matches(
        "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "must be the name of a Kubernetes object: lower-case letters, digits, '-' and '.'",
    ),
]
IMAGE = "[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9._-]+)*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?"
"""RE2 of an image reference: registry with its port, folders, tag, digest."""
ImageReference = Annotated[
    str,
    Field(min_length=1, max_length=1024),
    matches(
        f"^{IMAGE}$",
        "must be an image such as registry.example.com/team/image:tag or …/image@sha256:<64 hex digits>, "
        "with no scheme before it",
    ),
]
MemorySize = Annotated[
    str,
    Field(min_length=2, max_length=24),
    matches(
        r"^[0-9]*[1-9][0-9]*(\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)$",
        "must be a size above zero with its unit, such as 16Gi or 512Mi; a bare number would mean bytes",
    ),
]
LABEL_KEY = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
LABELS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "maxProperties": 64,
    "additionalProperties": {"type": "string", "maxLength": 63},
}
