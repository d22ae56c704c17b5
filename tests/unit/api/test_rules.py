"""Every rule of the CRD, broken by itself, and the sound objects that no rule may stand in the way of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.api.base import RULES
from bowsprit.api.crd import openapi_schema
from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.api.validate import Problem, validate
from tests.unit.api.accepted_cases import ACCEPTED
from tests.unit.api.malformed_cases import MALFORMED, UNKNOWN
from tests.unit.api.manifests import Manifest, Refused, manifest
from tests.unit.api.refused_cases import REFUSED


@pytest.mark.parametrize("sound", ACCEPTED.values(), ids=ACCEPTED)
def test_it_takes(sound: Manifest) -> None:
    assert validate(sound) == []
    ModelDeployment.model_validate(sound)


@pytest.mark.parametrize(
    "case", [*REFUSED.values(), *MALFORMED.values(), *UNKNOWN.values()], ids=[*REFUSED, *MALFORMED, *UNKNOWN]
)
def test_it_refuses_with_field_and_cure(case: Refused) -> None:
    problems = validate(case.manifest)
    assert [problem.field for problem in problems] == [case.field]
    assert case.message in problems[0].message


def test_every_rule_has_a_case_that_breaks_it() -> None:
    broken = {message for case in REFUSED.values() for _, message in validate(case.manifest)}
    assert {entry["message"] for entry in rules_of(openapi_schema())} == broken


def test_all_faults_are_named_at_once() -> None:
    bad = manifest("vllm", engine={"args": ["-tp", "4"]}, parallelism={"tensor": 4, "gpusPerPod": 2})
    assert [problem.field for problem in validate(bad)] == [
        "metadata.name",
        "spec.engine.args[0]",
        "spec.parallelism.gpusPerPod",
    ]


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (None, ""),
        ([], ""),
        ("text", ""),
        ({**manifest(), "apiVersion": "v1"}, "apiVersion"),
        ({**manifest(), "kind": "Pod"}, "kind"),
        ({**manifest(), "metadata": {}}, "metadata.name"),
        ({**manifest(), "metadata": None}, "metadata.name"),
        ({**manifest(), "metadata": {"name": 7}}, "metadata.name"),
        (manifest(replicas=float("nan")), "spec.replicas"),
        (manifest(capacity={"gpuMemoryUtilization": float("nan")}), "spec.capacity.gpuMemoryUtilization"),
        (manifest(template={"spec": {1: 2}}), "spec.template.spec"),
    ],
)
def test_what_is_no_model_deployment_is_told_so(broken: Any, field: str) -> None:
    assert field in {problem.field for problem in validate(broken)}


def test_a_problem_reads_as_one_line() -> None:
    assert str(Problem("spec.x", "is bad")) == "spec.x: is bad"
    assert str(Problem("", "is bad")) == "is bad"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SECTIONS = sorted(openapi_schema()["properties"]["spec"]["properties"])


@given(section=st.sampled_from(SECTIONS), value=json_values)
def test_no_value_makes_it_fail_and_what_it_takes_the_operator_can_read(section: str, value: Any) -> None:
    hostile = manifest(**{section: value})
    if not validate(hostile):
        ModelDeployment.model_validate(hostile)


@given(value=st.dictionaries(st.text(max_size=8), json_values, max_size=3))
def test_open_objects_take_whatever_json_holds(value: dict[str, Any]) -> None:
    value.pop("architectures", None)
    assert validate(manifest(architecture={"hfOverrides": value, "override": "X"})) == []


def rules_of(schema: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    yield from schema.get(RULES, ())
    for child in schema.get("properties", {}).values():
        yield from rules_of(child)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from rules_of(schema[key])
