"""What clusters hold is rendered for ever as it was: recorded revisions, and the pods that they became.

A file of recorded/v<render version>/ has three documents: the spec that a user applied, the
ControllerRevision as the API server gave it back, and the workload. A test that fails here says that an
upgrade of the operator would restart engines: CONTRIBUTING.md, "Changing what pods look like".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.facts.model import ModelFacts
from bowsprit.facts.told import facts_from_told
from bowsprit.render.revision import (
    RENDER_VERSION,
    Revision,
    from_controller_revision,
    target_revision,
    to_controller_revision,
)
from bowsprit.render.wishes import dtype_of, hf_overrides_of
from bowsprit.render.workload import layout_of, workload
from tests.unit.render.conftest import RECORDED
from tests.unit.render.examples import EXAMPLES, FACTS, OWNER, revision
from tests.unit.render.test_what_makes_a_revision import DEFAULTS, later_operator

Json = dict[str, Any]
FILES = sorted(RECORDED.glob("v*/*.yaml"))


def held(manifest: Json) -> Json:
    """As a cluster holds it."""
    server = {
        "uid": "0c6f5b0e-3f0a-4d0e-8a55-6d6f2b1c7a90",
        "resourceVersion": "4711",
        "creationTimestamp": "2026-11-30T12:00:00Z",
        "annotations": {"bowsprit.dev/rendered": "0123456789abcdef"},
        "managedFields": [{"manager": "bowsprit", "operation": "Apply", "apiVersion": "apps/v1"}],
    }
    return {**manifest, "metadata": {**manifest["metadata"], **server}}


def read(file: Path) -> tuple[ModelDeploymentSpec, Revision, Json]:
    applied, controller_revision, rendered = yaml.safe_load_all(file.read_text())
    kept = from_controller_revision(controller_revision)
    assert kept is not None, "it is read"
    assert controller_revision["metadata"]["name"].endswith(kept.hash), "and known again"
    return ModelDeploymentSpec.model_validate(applied["spec"]), kept, rendered


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_recorded(name: str, record: Callable[[Path, list[Json]], None]) -> None:
    example = EXAMPLES[name]
    what = revision(**example.fields)
    applied = {"spec": {"model": {"uri": "hf://meta-llama/Llama-3.1-70B"}, **example.fields}}
    file = RECORDED / f"v{RENDER_VERSION}" / f"{name}.yaml"
    kept = held(to_controller_revision(what, OWNER))
    record(file, [applied, kept, workload(OWNER, what, example.layout, replicas=2)])
    assert file.exists(), "run pytest tests/unit/render --record-revisions"


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_the_pods_are_what_they_were(file: Path) -> None:
    _, kept, rendered = read(file)
    layout = layout_of(rendered)
    assert layout is not None
    with later_operator(*DEFAULTS):
        again = workload(OWNER, kept, layout, rendered["spec"]["replicas"])
    assert again == rendered


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_the_spec_that_asked_for_it_still_does(file: Path) -> None:
    applied, kept, _ = read(file)
    with later_operator(*DEFAULTS):
        assert target_revision(applied, FACTS, OWNER.name, {}, [kept]) == kept


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_it_can_be_planned_by_the_facts_that_it_keeps(file: Path) -> None:
    _, kept, _ = read(file)
    facts = facts_from_told(kept.told, hf_overrides_of(kept.spec), dtype_of(kept.spec))
    assert isinstance(facts, ModelFacts)
    assert (len(facts.layers), facts.max_model_len) == (80, 131072)


def test_versions_up_to_this_one_are_recorded() -> None:
    versions = {f"v{number}" for number in range(1, RENDER_VERSION + 1)}
    assert {folder.name for folder in RECORDED.iterdir()} == versions
