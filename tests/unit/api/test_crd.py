"""The CRD: what the API server asks of a structural schema, and what its users' tools ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.api import defaults
from bowsprit.api.base import DOC_KEYWORDS
from bowsprit.api.crd import FILE, crd, crd_yaml, openapi_schema
from bowsprit.api.fields import spec_leaves, walk
from bowsprit.api.schema import structural
from bowsprit.api.v1alpha1 import ModelDeploymentSpec

ROOT = Path(__file__).resolve().parents[3]
CLIENT_APPLY_LIMIT = 200_000
"""Bytes: `kubectl apply` keeps a copy of the object in an annotation of at most 256 KiB."""


def nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema within a schema, open objects included, with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from nodes(schema[key], path + mark)


NODES = dict(nodes(openapi_schema()))


def test_the_file_in_crds_is_current() -> None:
    assert (ROOT / FILE).read_text(encoding="utf-8") == crd_yaml()


def test_it_is_small_enough_for_client_side_apply() -> None:
    assert len(crd_yaml().encode()) < CLIENT_APPLY_LIMIT / 2


def test_it_reads_back_as_it_is_and_without_anchors() -> None:
    assert yaml.safe_load(crd_yaml()) == crd()
    assert "&id" not in crd_yaml()


@pytest.mark.parametrize("keyword", ["$ref", "$defs", "title", "nullable", "const", "oneOf", *DOC_KEYWORDS])
def test_no_schema_holds(keyword: str) -> None:
    assert [path for path, schema in NODES.items() if keyword in schema] == []


def test_nothing_of_the_spec_has_a_default_and_the_status_says_that_nobody_has_looked() -> None:
    defaults_in_schema = {path: schema["default"] for path, schema in NODES.items() if "default" in schema}
    assert defaults_in_schema == {".status": {"observedGeneration": -1}}


def test_every_schema_has_a_type_or_is_int_or_string() -> None:
    untyped = [
        path
        for path, schema in NODES.items()
        if "type" not in schema and not schema.get("x-kubernetes-int-or-string")
    ]
    assert untyped == []


def test_alternatives_exist_for_int_or_string_only() -> None:
    assert all(schema.get("x-kubernetes-int-or-string") for schema in NODES.values() if "anyOf" in schema)


def test_every_list_is_bounded() -> None:
    assert [
        path for path, schema in NODES.items() if schema.get("type") == "array" and "maxItems" not in schema
    ] == []


def test_every_map_is_bounded() -> None:
    unbounded = [
        path
        for path, schema in NODES.items()
        if "additionalProperties" in schema and "maxProperties" not in schema
    ]
    assert unbounded == []


def test_every_text_that_a_rule_reads_is_bounded() -> None:
    ruled = [
        path
        for path, schema in NODES.items()
        if schema.get("type") == "string"
        and "x-kubernetes-validations" in schema
        and "maxLength" not in schema
    ]
    assert ruled == []


def test_every_field_outside_of_open_objects_says_what_it_means() -> None:
    silent = [
        path
        for path, schema in walk(openapi_schema())
        if not path.endswith("[]") and not schema.get("description") and not path.startswith("metadata")
    ]
    assert silent == []


def test_every_list_of_spec_says_how_server_side_apply_merges_it() -> None:
    unsaid = [
        path
        for path, schema in walk(openapi_schema())
        if schema.get("type") == "array" and "x-kubernetes-list-type" not in schema
    ]
    assert unsaid == []


def test_the_columns_are_those_that_users_see_by_default_and_with_wide() -> None:
    columns = crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == [
        "Model",
        "Phase",
        "Ready",
        "GPUs",
        "Layout",
        "Replicas",
        "Age",
    ]
    assert [column["name"] for column in columns if column.get("priority")] == [
        "Arch",
        "Plugins",
        "Reason",
        "URL",
    ]


def test_kubectl_delete_all_does_not_meet_models() -> None:
    assert crd()["spec"]["names"]["categories"] == ["bowsprit"]


def test_every_leaf_of_the_spec_is_listed_once_and_open_objects_as_one() -> None:
    leaves = spec_leaves()
    assert len(leaves) == len(set(leaves))
    assert {
        "model.uri",
        "plugins[].entryPoints[]",
        "architecture.hfOverrides",
        "template.spec",
        "suspend",
    } <= set(leaves)
    assert not any(leaf.startswith("template.spec.") for leaf in leaves)


def test_every_documented_default_belongs_to_a_field_and_is_a_value_that_the_field_takes() -> None:
    fields = dict(walk(structural(ModelDeploymentSpec)))
    for path, default in defaults.BY_FIELD.items():
        assert default in fields[path].get("enum", [default])
        assert fields[path].get("minimum", default) <= default <= fields[path].get("maximum", default)
