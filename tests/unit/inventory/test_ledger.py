"""The Fleet: what is free, who holds what, what is left out; and the ledger that keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.inventory.ledger import GpuLedger, fleet
from bowsprit.inventory.nodes import NodeView, node_facts
from bowsprit.inventory.pods import PodView, pod_facts
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.fleet import Fleet, Holder
from tests.unit.inventory.objects import node, pod

TABLE = ProductTable()


def fleet_of(nodes: Sequence[dict[str, Any]], pods: Sequence[dict[str, Any]] = ()) -> Fleet:
    return fleet(map(node_facts, nodes), map(pod_facts, pods), TABLE)


def free(found: Fleet) -> dict[str, int]:
    return {entry.name: entry.free for entry in found.nodes}


def test_free_is_allocatable_less_what_pods_hold() -> None:
    found = fleet_of(
        [node("n1"), node("n2", gpus=4)],
        [
            pod("a", 2),
            pod("b", 1),
            pod("c", 4, phase="Failed"),
            pod("d", 3, node="n2"),
            pod("e", 8, node="gone"),
        ],
    )
    assert free(found) == {"n1": 5, "n2": 1}
    assert [entry.total for entry in found.nodes] == [8, 4]


def test_free_is_never_below_zero_when_a_device_was_lost_under_a_pod() -> None:
    found = fleet_of([node(gpus=7, capacity=8, labels={"nvidia.com/gpu.count": "8"})], [pod(gpus=8)])
    assert free(found) == {"n1": 0}
    assert found.holders == (Holder("team/p1", "NVIDIA-H100-80GB-HBM3", 8),)
    assert [(left.reason, left.gpus) for left in found.left_out] == [("Unhealthy", 1)]


def test_holders_are_models_or_pods_largest_first_by_product() -> None:
    ours = {"bowsprit.dev/model": "llama"}
    found = fleet_of(
        [node("n1"), node("n2"), node("n3", product="NVIDIA-L40S", memory="46068")],
        [
            pod("llama-0", 1, labels=ours),
            pod("llama-1", 2, node="n2", labels=ours),
            pod("job", 5),
            pod("llama-2", 1, node="n3", labels=ours),
            pod("amd", 0),
        ],
    )
    assert found.holders == (
        Holder("team/job", "NVIDIA-H100-80GB-HBM3", 5),
        Holder("team/llama", "NVIDIA-H100-80GB-HBM3", 3),
        Holder("team/llama", "NVIDIA-L40S", 1),
    )


def test_a_pod_pinned_by_us_holds_before_it_is_bound() -> None:
    pinned = pod(node=None, pinned="n1", phase="Pending", gpus=3, labels={"bowsprit.dev/model": "m"})
    assert free(fleet_of([node()], [pinned])) == {"n1": 5}


def test_pods_on_a_cordoned_node_keep_their_gpus_and_all_are_counted() -> None:
    found = fleet_of([node(unschedulable=True)], [pod(gpus=3)])
    [left] = found.left_out
    assert found.nodes == ()
    assert (left.reason, left.gpus, left.held, left.product) == ("Cordoned", 8, 3, "NVIDIA-H100-80GB-HBM3")
    assert found.holders == ()


def test_whole_gpus_of_unknown_memory_are_left_out_and_counted() -> None:
    found = fleet_of([node(gpus=1, product="NVIDIA-GB10", memory=None)])
    [left] = found.left_out
    assert (found.nodes, left.reason, left.gpus, left.product) == ((), "MemoryUnknown", 1, "NVIDIA-GB10")


def test_every_cause_stands_in_the_message() -> None:
    [left] = fleet_of([node(ready="False", unschedulable=True)]).left_out
    assert left.reason == "NotReady"
    assert "Ready condition" in left.message
    assert "cordoned" in left.message
    assert left.gpus == 8


def test_several_models_in_a_node_name_no_product() -> None:
    [left] = fleet_of([node(gpus=3, labels={"nvidia.com/gpu.count": "1"})]).left_out
    assert (left.reason, left.product, left.gpus) == ("MixedModels", None, 3)


def test_nodes_without_gpus_are_not_mentioned() -> None:
    assert fleet_of([node(gpus=None, product=None, memory=None, ready="False")]) == Fleet(())


def test_the_ledger_gives_the_same_fleet_while_nothing_changes() -> None:
    ledger = GpuLedger(TABLE)
    ledger.upsert_node(node_facts(node()))
    ledger.upsert_pod(pod_facts(pod()))
    before = ledger.fleet()
    ledger.upsert_node(node_facts(node()))
    ledger.upsert_pod(pod_facts(pod()))
    ledger.upsert_pod(pod_facts(pod("finished", gpus=0, phase="Succeeded")))
    ledger.upsert_pod(pod_facts(pod("elsewhere", gpus=0, node="n2")))
    ledger.remove_pod("team", "never seen")
    ledger.remove_node("never seen")
    assert ledger.fleet() is before


def test_a_pod_that_moves_or_comes_again_under_its_name_is_counted_once() -> None:
    ledger = GpuLedger(TABLE)
    ledger.upsert_pod(pod_facts(pod(gpus=3, node="n1")))
    for name in ("n1", "n2"):
        ledger.upsert_node(node_facts(node(name)))
    assert free(ledger.fleet()) == {"n1": 5, "n2": 8}
    ledger.upsert_pod(pod_facts(pod(gpus=2, node="n2")))
    assert free(ledger.fleet()) == {"n1": 8, "n2": 6}
    assert ledger.fleet().holders == (Holder("team/p1", "NVIDIA-H100-80GB-HBM3", 2),)
    ledger.upsert_pod(pod_facts(pod(gpus=2, node="n2", phase="Succeeded")))
    assert free(ledger.fleet()) == {"n1": 8, "n2": 8}
    assert ledger.fleet().holders == ()


def test_gpus_of_another_vendor_are_not_taken_from_a_node() -> None:
    other = pod()
    other["spec"]["containers"][0]["resources"] = {"limits": {"amd.com/gpu": "2"}}
    assert free(fleet_of([node()], [other])) == {"n1": 8}


def test_a_removed_node_is_gone_with_its_holders() -> None:
    ledger = GpuLedger(TABLE)
    ledger.upsert_node(node_facts(node()))
    ledger.upsert_pod(pod_facts(pod()))
    assert ledger.fleet().holders
    ledger.remove_node("n1")
    assert ledger.fleet() == Fleet(())


def test_more_held_than_there_is_on_a_cordoned_node() -> None:
    [left] = fleet_of([node(gpus=2, unschedulable=True)], [pod(gpus=3)]).left_out
    assert (left.gpus, left.held) == (2, 2)


def test_what_is_no_whole_gpu_gets_no_product_from_the_instance_type() -> None:
    labels = {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    raw = node(gpus=0, product=None, memory=None, labels=labels, others={"nvidia.com/gpu.shared": "128"})
    [left] = fleet_of([raw]).left_out
    assert (left.reason, left.product, left.gpus) == ("Shared", None, 0)


names = st.sampled_from(["n1", "n2", "n3"])
node_views = st.builds(
    node,
    names,
    st.integers(0, 8),
    product=st.sampled_from(["NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "NVIDIA-GB10", "NVIDIA-L4-SHARED"]),
    memory=st.sampled_from([None, "46068", "141GB"]),
    unschedulable=st.booleans(),
    ready=st.sampled_from(["True", "True", "False"]),
).map(node_facts)
pod_views = st.builds(
    pod,
    st.sampled_from(["a", "b", "c", "d", "e"]),
    st.integers(0, 5),
    node=st.none() | names,
    pinned=st.none() | names,
    phase=st.sampled_from(["Pending", "Running", "Running", "Failed", "Succeeded"]),
    labels=st.sampled_from([{}, {"bowsprit.dev/model": "m"}]),
    terminating=st.booleans(),
).map(pod_facts)
changes = st.lists(
    st.one_of(
        node_views,
        pod_views,
        st.tuples(st.just("node"), names),
        st.tuples(st.just("pod"), st.sampled_from(["a", "b", "c", "d", "e"])),
    ),
    max_size=40,
)


def apply(ledger: GpuLedger, step: Any) -> None:
    match step:
        case NodeView():
            ledger.upsert_node(step)
        case PodView():
            ledger.upsert_pod(step)
        case ("node", name):
            ledger.remove_node(name)
        case ("pod", name):
            ledger.remove_pod("team", name)


@settings(max_examples=200)
@given(changes)
def test_the_ledger_equals_the_fleet_from_scratch_after_any_changes(steps: list[Any]) -> None:
    ledger, watched = GpuLedger(TABLE), GpuLedger(TABLE)
    nodes: dict[str, NodeView] = {}
    pods: dict[str, PodView] = {}
    for step in steps:
        for each in (ledger, watched):
            apply(each, step)
        watched.fleet()
        match step:
            case NodeView():
                nodes[step.name] = step
            case PodView():
                pods[step.name] = step
            case ("node", name):
                nodes.pop(name, None)
            case ("pod", name):
                pods.pop(name, None)
    found = ledger.fleet()
    assert found == watched.fleet() == fleet(nodes.values(), reversed(pods.values()), TABLE)
    for entry in found.nodes:
        held = sum(count for p in pods.values() if p.holds and p.node == entry.name for _, count in p.gpus)
        assert entry.free == max(0, entry.total - held)
        assert entry.total == nodes[entry.name].whole
