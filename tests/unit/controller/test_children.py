"""Objects of the API server as children of a model."""

from __future__ import annotations

import pytest

from bowsprit.cluster.resources import CONTROLLER_REVISIONS
from bowsprit.controller.children import project

OWNED = {"kind": "ModelDeployment", "name": "llama", "uid": "uid-model"}
SET = {"kind": "StatefulSet", "name": "lws", "uid": "uid-set"}
OWNERS: dict[str, tuple[list[dict[str, str]], dict[str, str], tuple[str, str] | None]] = {
    "a ModelDeployment's": ([OWNED], {}, ("llama", "uid-model")),
    "an orphan of one": ([], {"bowsprit.dev/model": "llama"}, ("llama", "")),
    "a StatefulSet's, with the labels of its pods": ([SET], {"bowsprit.dev/model": "llama"}, None),
    "nobody's": ([], {}, None),
}


@pytest.mark.parametrize(("references", "marks", "expected"), OWNERS.values(), ids=OWNERS)
def test_whose_child_an_object_is(
    references: list[dict[str, str]], marks: dict[str, str], expected: tuple[str, str] | None
) -> None:
    meta = {"namespace": "team", "name": "x", "uid": "u", "labels": marks, "ownerReferences": references}
    child = project(CONTROLLER_REVISIONS, {"metadata": meta, "data": {}, "revision": 1})
    assert (child and (child.model, child.owner)) == expected
