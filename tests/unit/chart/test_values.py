"""The chart's values: each has its type, default and meaning in values.schema.json, and each is used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

import bowsprit
from bowsprit.api.crd import crd
from bowsprit.cluster import access
from docs.generators import chart
from docs.pages import ROOT

CHART = ROOT / chart.CHART
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
LEAVES = dict(chart.leaves(SCHEMA))
DEFAULTS = yaml.safe_load(chart.values_yaml(SCHEMA))
TEMPLATES = {path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())}

FOR_PARENTS = {"global", "enabled"}
"""What Helm and parent charts add by themselves; no template reads it."""


def groups(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects that only hold values, the outermost among them."""
    yield path, schema
    for name, value in schema["properties"].items():
        if "description" not in value:
            yield from groups(value, f"{path}.{name}".lstrip("."))


@pytest.mark.parametrize("path", [path for path, _ in groups(SCHEMA)])
def test_each_group_of_values_refuses_what_it_does_not_know(path: str) -> None:
    group = dict(groups(SCHEMA))[path]
    assert group["type"] == "object"
    assert group["additionalProperties"] is False


@pytest.mark.parametrize("path", LEAVES)
def test_each_value_has_a_meaning_a_kind_and_a_default(path: str) -> None:
    value = LEAVES[path]
    assert value["description"].endswith(".")
    assert "type" in value or "enum" in value
    assert ("default" in value) is (path not in FOR_PARENTS)


def test_the_defaults_are_those_of_the_schema() -> None:
    for path, value in LEAVES.items():
        found: Any = DEFAULTS
        for name in path.split("."):
            found = found.get(name)
        assert found == value.get("default"), path


def test_templates_read_only_what_the_schema_knows() -> None:
    """That each value also changes something is tested with Helm itself."""
    used = set(re.findall(r"\.Values\.([A-Za-z.]+)", "\n".join(TEMPLATES.values())))
    assert used
    assert used <= {path for path, _ in groups(SCHEMA)} | set(LEAVES)


def test_the_chart_is_of_the_version_of_the_operator() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (bowsprit.__version__, f"v{bowsprit.__version__}")


def test_the_crd_and_the_rules_are_those_of_the_code() -> None:
    texts = chart.generate()
    assert yaml.safe_load(texts[f"{chart.CHART}/files/modeldeployments-spec.yaml"]) == {"spec": crd()["spec"]}
    for kind, name in (("ClusterRole", "clusterrole-rules"), ("Role", "role-rules")):
        (role,) = (each for each in access.manifests() if each["kind"] == kind)
        assert yaml.safe_load(texts[f"{chart.CHART}/files/{name}.yaml"]) == {"rules": role["rules"]}


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", (CHART / "README.md").read_text())
    assert links
    assert [link for link in links if not (CHART / link).exists()] == []
