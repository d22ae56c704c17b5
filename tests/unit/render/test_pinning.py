from __future__ import annotations

from typing import Any

import pytest

from bowsprit.render.pinning import pin_patch
from tests.unit.json_patch import patched

GATE = {"name": "bowsprit.dev/placement"}
KUEUE = {"name": "kueue.x-k8s.io/admission"}
PIN = {"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
SPOT = {"key": "spot", "operator": "DoesNotExist"}


def pod(gates: Any = (GATE,), **spec: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "u-1", "name": "p"}, "spec": {"schedulingGates": list(gates), **spec}}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def pinned(before: dict[str, Any]) -> dict[str, Any]:
    return patched(before, pin_patch(before, "gpu-1"))


AFFINITIES: dict[str, tuple[Any, Any]] = {
    "no affinity": (None, {"nodeAffinity": required({"matchFields": [PIN]})}),
    "an empty one": ({}, {"nodeAffinity": required({"matchFields": [PIN]})}),
    "pod affinity only": (
        {"podAffinity": {"x": 1}},
        {"podAffinity": {"x": 1}, "nodeAffinity": required({"matchFields": [PIN]})},
    ),
    "a preference for nodes, which stays": (
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [1]}},
        {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [1],
                **required({"matchFields": [PIN]}),
            }
        },
    ),
    "two alternatives, each narrowed to the node": (
        {"nodeAffinity": required({"matchExpressions": [ZONE]}, {"matchExpressions": [SPOT]})},
        {
            "nodeAffinity": required(
                {"matchExpressions": [ZONE], "matchFields": [PIN]},
                {"matchExpressions": [SPOT], "matchFields": [PIN]},
            )
        },
    ),
    "fields of the user's own, which go on holding": (
        {"nodeAffinity": required({"matchFields": [ZONE]})},
        {"nodeAffinity": required({"matchFields": [ZONE, PIN]})},
    ),
    "a term that matches nothing, which may not be touched": (
        {"nodeAffinity": required({}, {"matchExpressions": [ZONE]})},
        {"nodeAffinity": required({}, {"matchExpressions": [ZONE], "matchFields": [PIN]})},
    ),
}


@pytest.mark.parametrize("case", AFFINITIES)
def test_a_pod_is_pinned_beside(case: str) -> None:
    before, after = AFFINITIES[case]
    spec = {} if before is None else {"affinity": before}
    assert pinned(pod(**spec))["spec"] == {"schedulingGates": [], "affinity": after}


@pytest.mark.parametrize("gates", [(GATE, KUEUE), (KUEUE, GATE)], ids=["after ours", "before ours"])
def test_the_gate_of_another_controller_stays(gates: Any) -> None:
    assert pinned(pod(gates))["spec"]["schedulingGates"] == [KUEUE]


@pytest.mark.parametrize("gates", [(), (KUEUE,)], ids=["no gate", "only a foreign gate"])
def test_a_pod_that_is_not_held_by_us_is_left_alone(gates: Any) -> None:
    assert pin_patch(pod(gates), "gpu-1") == []


def test_a_pod_without_a_list_of_gates_is_left_alone() -> None:
    assert pin_patch({"metadata": {"uid": "u"}, "spec": {}}, "gpu-1") == []


def test_the_patch_holds_only_for_the_pod_that_was_seen() -> None:
    steps = pin_patch(pod((KUEUE, GATE)), "gpu-1")
    assert [step for step in steps if step["op"] == "test"] == [
        {"op": "test", "path": "/metadata/uid", "value": "u-1"},
        {"op": "test", "path": "/spec/schedulingGates/1/name", "value": "bowsprit.dev/placement"},
    ]
