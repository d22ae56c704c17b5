from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bowsprit.render.preflight import preflight_job, preflight_key
from bowsprit.render.problems import problems
from bowsprit.render.revision import to_controller_revision
from bowsprit.render.services import services
from bowsprit.render.workload import workload
from tests.unit.render.examples import EXAMPLES, IMAGES, OWNER, revision, spec


def manifests(name: str) -> list[dict[str, Any]]:
    example = EXAMPLES[name]
    what = revision(**example.fields)
    key = preflight_key(spec(**example.fields), OWNER.namespace)
    return [
        preflight_job(OWNER, key, spec(**example.fields), IMAGES["runtime"]),
        to_controller_revision(what, OWNER),
        *services(OWNER, what.hash),
        workload(OWNER, what, example.layout, replicas=2),
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_manifests_are_as_reviewed(name: str, golden: Callable[[str, list[dict[str, Any]]], None]) -> None:
    golden(name, manifests(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_same_input_renders_the_same_manifests(name: str) -> None:
    assert manifests(name) == manifests(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_no_problems(name: str) -> None:
    assert problems(spec(**EXAMPLES[name].fields)) == ()


def test_no_golden_file_is_left_over() -> None:
    assert {file.stem for file in Path(__file__).with_name("golden").glob("*.yaml")} == set(EXAMPLES)


def test_changing_a_manifest_leaves_the_revision_as_it_was() -> None:
    what = revision(**EXAMPLES["template"].fields)
    first = workload(OWNER, what, EXAMPLES["template"].layout, 1)
    template = first["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    template["metadata"]["labels"]["team"] = "changed"
    template["spec"]["securityContext"]["fsGroup"] = 0
    again = workload(OWNER, what, EXAMPLES["template"].layout, 1)["spec"]["leaderWorkerTemplate"][
        "leaderTemplate"
    ]
    assert (again["metadata"]["labels"]["team"], again["spec"]["securityContext"]["fsGroup"]) == (
        "chat",
        2000,
    )
