"""An inventory from files: everything readable is read, everything else is named."""

from __future__ import annotations

from typing import Any

from bowsprit.inventory.documents import read_inventory
from tests.unit.inventory.objects import node, pod


def read(*documents: Any) -> tuple[list[str], list[str], list[str]]:
    nodes, pods, problems = read_inventory(documents)
    return [view.name for view in nodes], [view.name for view in pods], [str(problem) for problem in problems]


def test_a_list_as_kubectl_prints_it() -> None:
    found = read({"apiVersion": "v1", "kind": "List", "items": [node("a"), pod("p"), node("b")]})
    assert found == (["a", "b"], ["p"], [])


def test_items_of_typed_lists_carry_no_kind() -> None:
    bare_node, bare_pod = node("a"), pod("p")
    del bare_node["kind"], bare_pod["kind"]
    assert read({"kind": "NodeList", "items": [bare_node]}, {"kind": "PodList", "items": [bare_pod]}) == (
        ["a"],
        ["p"],
        [],
    )


def test_single_documents() -> None:
    assert read(node("a"), pod("p")) == (["a"], ["p"], [])


def test_other_kinds_are_ignored_in_one_line_each() -> None:
    _, _, problems = read(node("a"), {"kind": "ConfigMap"}, {"kind": "ConfigMap"}, {"kind": "Service"})
    assert problems == [
        "ConfigMap: 2 ignored: an inventory is made of Nodes and Pods",
        "Service: 1 ignored: an inventory is made of Nodes and Pods",
    ]


def test_what_is_no_object_is_named_by_its_place_and_loses_nothing() -> None:
    nodes, _, problems = read(
        None,
        "text",
        {"kind": "List", "items": [7, node("a"), {"kind": "Node"}]},
        {"kind": "List", "items": None},
        {"kind": "List", "items": "nodes"},
    )
    assert nodes == ["a"]
    assert [problem.split(":")[0] for problem in problems] == [
        "document 1",
        "document 2",
        "document 3, item 0",
        "document 3, item 2",
    ]


def test_an_object_that_comes_twice_counts_once() -> None:
    nodes, pods, problems = read_inventory([node("a", gpus=8), node("a", gpus=4), pod("p"), pod("p")])
    assert [view.units for view in nodes] == [4]
    assert len(pods) == 1
    assert [problem.where for problem in problems] == ["Node a", "Pod team/p"]


def test_a_list_that_holds_itself_ends() -> None:
    endless: dict[str, Any] = {"kind": "List", "items": [node("a")]}
    endless["items"].append(endless)
    nodes, _, problems = read(endless)
    assert nodes == ["a"]
    assert problems == ["List: 1 ignored: an inventory is made of Nodes and Pods"]


def test_gpus_behind_resource_slices_are_seen_and_not_planned() -> None:
    device = {
        "basic": {
            "attributes": {"type": {"string": "amdgpu-partition"}, "partitionProfile": {"string": "dpx_nps1"}}
        }
    }
    entry = {
        "kind": "ResourceSlice",
        "spec": {"driver": "gpu.amd.com", "nodeName": "a", "devices": [device, device]},
    }
    _, _, [problem] = read_inventory([entry])
    assert problem.where == "Node a"
    assert "2 x amdgpu-partition dpx_nps1" in problem.message
    flat = {"kind": "ResourceSlice", "spec": {"nodeName": "a", "devices": [device["basic"], 3]}}
    _, _, [problem] = read_inventory([flat])
    assert "1 x amdgpu-partition dpx_nps1" in problem.message
