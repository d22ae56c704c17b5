"""A workload says its layout itself, and is believed only where all that it says agrees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.plan.result import Layout
from bowsprit.render.canonical import canonical_json
from bowsprit.render.layouts import layout_data, layout_key, parse_layout
from bowsprit.render.names import LAYOUT_ANNOTATION
from bowsprit.render.workload import layout_of, workload
from tests.unit.render.examples import LAYOUTS, ONE_GPU, ONE_POD, OWNER, revision

DAMAGED = ["", "{}", "[]", "null", "not JSON", '{"product":"x"}', "[" * 100_000]

layouts = st.builds(
    Layout,
    product=st.text(max_size=40),
    tensor=st.integers(1, 8),
    pipeline=st.integers(1, 8),
    gpus_per_pod=st.integers(1, 8),
    layer_partition=st.lists(st.integers(1, 99), max_size=8).map(tuple),
)


@given(layouts)
def test_a_workload_knows_its_layout(layout: Layout) -> None:
    manifest = workload(OWNER, revision(), layout, 1)
    assert layout_of(manifest) == layout


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_key)
@pytest.mark.parametrize("text", [*DAMAGED, None], ids=range(len(DAMAGED) + 1))
def test_a_workload_knows_its_layout_when_the_annotation_is_damaged(layout: Layout, text: str | None) -> None:
    manifest = workload(OWNER, revision(), layout, 1)
    manifest["metadata"]["annotations"][LAYOUT_ANNOTATION] = text
    assert layout_of(manifest) == layout


def test_an_annotation_that_says_another_layout_is_not_believed() -> None:
    manifest = workload(OWNER, revision(), ONE_POD, 1)
    other = workload(OWNER, revision(), ONE_GPU, 1)
    manifest["metadata"]["annotations"] = other["metadata"]["annotations"]
    assert layout_of(manifest) == ONE_POD


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"kind": "Deployment"},
        {"kind": "Deployment", "metadata": {"annotations": None}, "spec": {"template": {"spec": None}}},
        {"kind": "LeaderWorkerSet", "spec": {"leaderWorkerTemplate": {"workerTemplate": {}}}},
        {
            "kind": "Deployment",
            "metadata": {"annotations": {LAYOUT_ANNOTATION: "{}"}},
            "spec": {"template": 1},
        },
    ],
    ids=range(5),
)
def test_an_object_of_another_maker_has_no_layout(manifest: dict[str, Any]) -> None:
    assert layout_of(manifest) is None


@given(st.text())
def test_reading_a_layout_never_fails(text: str) -> None:
    assert parse_layout(text) is None or isinstance(parse_layout(text), Layout)


@pytest.mark.parametrize("field", ["tensor", "pipeline", "gpusPerPod", "layerPartition", "product"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "1", None, [0], [True], {}], ids=repr)
def test_a_layout_with_a_wrong_number_is_no_layout(field: str, value: Any) -> None:
    if (field, value) != ("product", "1"):
        assert parse_layout(canonical_json({**layout_data(ONE_POD), field: value})) is None
