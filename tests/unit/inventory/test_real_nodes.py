"""Node inventories as they really look (../shared/data/nodes): every expectation that stands in the files.

`linked` is judged only where GPUs may be used, and null counts as not linked; `memoryMiB` is what the labels
say, so the plan may use a little less, never more; where it is null the answer is a known value or
MemoryUnknown.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bowsprit.inventory.documents import Problem, read_inventory
from bowsprit.inventory.ledger import fleet
from bowsprit.inventory.nodes import NodeView
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.fleet import Fleet, GpuNode, LeftOut

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "nodes"
FILES = sorted(FOLDER.glob("*.yaml"))

pytestmark = pytest.mark.skipif(not FILES, reason="../shared/data/nodes is not there")


class Reading(NamedTuple):
    views: dict[str, NodeView]
    fleet: Fleet
    problems: list[Problem]

    def node(self, name: str) -> GpuNode | None:
        return next((entry for entry in self.fleet.nodes if entry.name == name), None)

    def left_out(self, name: str) -> list[LeftOut]:
        return [entry for entry in self.fleet.left_out if entry.node == name]


def documents(file: Path) -> list[Any]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def expectations(file: Path) -> dict[str, dict[str, Any]]:
    lines = re.finditer(r"^# expect ([^:]+): (\{.*\})$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {line[1]: json.loads(line[2]) for line in lines}


def read(found: list[Any]) -> Reading:
    nodes, pods, problems = read_inventory(found)
    return Reading({view.name: view for view in nodes}, fleet(nodes, pods, ProductTable()), problems)


EXPECTED = [(file, name, expected) for file in FILES for name, expected in expectations(file).items()]


def usable(reading: Reading, name: str, resource: str) -> tuple[int, int]:
    """(whole GPUs, free ones) for a replica that tolerates only the taint named like the resource."""
    entry = reading.node(name)
    if entry is not None:
        tolerated = all(taint.key == resource for taint in entry.taints)
        return (entry.total, entry.free) if tolerated else (0, 0)
    unknown = [left for left in reading.left_out(name) if left.reason == "MemoryUnknown"]
    return sum(left.gpus for left in unknown), sum(left.gpus - left.held for left in unknown)


def judge(reading: Reading, name: str, expected: dict[str, Any]) -> None:
    view, entry = reading.views[name], reading.node(name)
    assert view.units == expected["units"]
    assert usable(reading, name, view.resource) == (expected["wholeGPUs"], expected["free"])
    if entry is not None:
        judge_type(view, entry, expected)
    elif expected["wholeGPUs"] or expected.get("reason", "no GPU") != "no GPU":
        assert reading.left_out(name) or any(name in problem.where for problem in reading.problems)


def judge_type(view: NodeView, entry: GpuNode, expected: dict[str, Any]) -> None:
    assert entry.linked is bool(expected["linked"])
    said = expected["type"]
    if said is not None:
        # A virtual function is named by its PCI id, with the label of the whole card.
        assert said == view.product.value or (not view.product.value and said in entry.product)
    if expected["memoryMiB"] is not None:
        assert expected["memoryMiB"] * 0.985 <= entry.memory_mib <= expected["memoryMiB"]
    else:
        assert view.memory.least_mib == 0
        assert entry.memory_mib > 0


@pytest.mark.parametrize(("file", "name", "expected"), EXPECTED, ids=[name for _, name, _ in EXPECTED])
def test_each_file_reads_as_expected(file: Path, name: str, expected: dict[str, Any]) -> None:
    judge(read(documents(file)), name, expected)


def test_every_node_of_the_files_has_an_expectation() -> None:
    for file in FILES:
        assert set(read(documents(file)).views) == set(expectations(file)), file.name


def test_all_files_together_give_the_sum_of_the_parts() -> None:
    parts = [read(documents(file)) for file in FILES]
    together = read([document for file in FILES for document in documents(file)])
    assert set(together.fleet.nodes) == {entry for part in parts for entry in part.fleet.nodes}
    assert set(together.fleet.left_out) == {entry for part in parts for entry in part.fleet.left_out}
    assert set(together.fleet.holders) == {entry for part in parts for entry in part.fleet.holders}
    for _, name, expected in EXPECTED:
        judge(together, name, expected)


def test_all_mi300x_are_of_one_type() -> None:
    file = next(file for file in FILES if "mi300x" in file.name)
    assert len({entry.product for entry in read(documents(file)).fleet.nodes}) == 1


def test_a_reason_names_the_label_resource_or_taint_that_was_seen() -> None:
    for file in FILES:
        for left in read(documents(file)).fleet.left_out:
            assert re.search(r"[a-z]+\.[a-z]+/\S+|spec\.unschedulable|Ready condition", left.message), left


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(),
    st.sampled_from(["", "0", "-3", "141GB", "1e3", "8k", "99999999999", "true", "Unknown", "\x00", "８"]),
    st.lists(st.none() | st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3), max_size=2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, leaves and branches."""
    found = [path] if path else []
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        found += places(inner, (*path, key))
    return found


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


@pytest.fixture(scope="module")
def items() -> list[dict[str, Any]]:
    found = []
    for file in FILES:
        for document in documents(file):
            found += document["items"] if document["kind"] == "List" else [document]
    return found


@pytest.fixture(scope="module")
def before(items: list[dict[str, Any]]) -> Reading:
    return read([{"kind": "List", "items": items}])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_spoilt_node_never_raises_and_never_changes_another(
    items: list[dict[str, Any]], before: Reading, data: st.DataObject
) -> None:
    index = data.draw(st.sampled_from([i for i, item in enumerate(items) if item["kind"] == "Node"]))
    name = items[index]["metadata"]["name"]
    spoilt = copy.deepcopy(items[index])
    kept = {("metadata",), ("metadata", "name"), ("kind",)}
    for path in data.draw(
        st.lists(st.sampled_from([p for p in places(spoilt) if p not in kept]), max_size=3)
    ):
        # A place inside one that was replaced before is gone.
        try:
            put(spoilt, path, data.draw(odd))
        except (TypeError, KeyError, IndexError):
            continue
    after = read([{"kind": "List", "items": [*items[:index], spoilt, *items[index + 1 :]]}])
    for other in before.views:
        if other != name:
            assert after.views[other] == before.views[other]
            assert after.node(other) == before.node(other)
            assert after.left_out(other) == before.left_out(other)
    entry = after.node(name)
    if entry is not None:
        assert 0 <= entry.free <= entry.total == after.views[name].whole
        assert entry.memory_mib >= 1024
        assert entry.product
