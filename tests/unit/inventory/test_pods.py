"""What a pod holds and where, counted as the scheduler counts it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.inventory.pods import pod_facts
from tests.unit.inventory.objects import GFD, pin, pod


def container(gpus: int, **fields: Any) -> dict[str, Any]:
    return {"resources": {"requests": {GFD: str(gpus)}}} | fields


REQUESTS: dict[str, tuple[dict[str, Any], int]] = {
    "containers add up": ({"containers": [container(2), container(1), {"name": "none"}]}, 3),
    "a limit alone is a request": ({"containers": [{"resources": {"limits": {GFD: 4}}}]}, 4),
    "the largest init container when it is more": (
        {"initContainers": [container(1), container(4)], "containers": [container(2)]},
        4,
    ),
    "init containers run before the containers": (
        {"initContainers": [container(2)], "containers": [container(2)]},
        2,
    ),
    "sidecars run along": (
        {"initContainers": [container(1, restartPolicy="Always")], "containers": [container(2)]},
        3,
    ),
    "an init container runs with the sidecars before it": (
        {
            "initContainers": [container(1, restartPolicy="Always"), container(4)],
            "containers": [container(1)],
        },
        5,
    ),
    "not with the sidecars after it": (
        {
            "initContainers": [container(4), container(1, restartPolicy="Always")],
            "containers": [container(1)],
        },
        4,
    ),
    "pod-level resources": ({"resources": {"requests": {GFD: "4"}}, "containers": [container(1)]}, 4),
    "garbage counts nothing": ({"containers": [{"resources": {"requests": {GFD: "many"}}}, 7, None]}, 0),
    "a negative count counts nothing": ({"containers": [container(-1), container(1)]}, 1),
    "nor as a number": ({"containers": [{"resources": {"limits": {GFD: -1}}}, container(1)]}, 1),
}


@pytest.mark.parametrize(("spec", "gpus"), REQUESTS.values(), ids=REQUESTS)
def test_requests(spec: dict[str, Any], gpus: int) -> None:
    assert dict(pod_facts({"spec": spec}).gpus).get(GFD, 0) == gpus


def test_both_resources_are_kept_apart_and_others_are_not_counted() -> None:
    resources = {"requests": {GFD: "1", "amd.com/gpu": "2", "nvidia.com/mig-1g.5gb": "3", "cpu": "4"}}
    assert pod_facts({"spec": {"containers": [{"resources": resources}]}}).gpus == (
        (GFD, 1),
        ("amd.com/gpu", 2),
    )


OURS = {"bowsprit.dev/model": "llama"}

HOLDING: dict[str, tuple[dict[str, Any], str, bool]] = {
    "bound": (pod(node="n1"), "n1", True),
    "bound and going": (pod(node="n1", terminating=True), "n1", True),
    "pinned by us": (pod(node=None, pinned="n2", phase="Pending", labels=OURS), "n2", True),
    "pinned by us, and a user took the model's label off": (
        pod(node=None, pinned="n2", phase="Pending", labels={"bowsprit.dev/revision": "5f7c9d"}),
        "n2",
        True,
    ),
    "pinned by a DaemonSet and not bound": (pod(node=None, pinned="n2", phase="Pending"), "n2", False),
    "neither": (pod(node=None, phase="Pending", labels=OURS), "", False),
    "Failed": (pod(node="n1", phase="Failed"), "n1", False),
    "Succeeded": (pod(node="n1", phase="Succeeded"), "n1", False),
    "Failed and going": (pod(node="n1", phase="Failed", terminating=True), "n1", False),
    "its node is lost": (pod(node="n1", phase="Unknown"), "n1", True),
    "bound elsewhere than pinned": (pod(node="n1", pinned="n2", labels=OURS), "n1", True),
    "asks for nothing": (pod(gpus=0), "n1", False),
}


@pytest.mark.parametrize(("raw", "node", "holds"), HOLDING.values(), ids=HOLDING)
def test_holding(raw: dict[str, Any], node: str, holds: bool) -> None:
    view = pod_facts(raw)
    assert (view.node, view.holds) == (node, holds)


def test_affinity_to_several_nodes_pins_to_none() -> None:
    raw = pod(node=None, phase="Pending", labels=OURS)
    raw["spec"]["affinity"] = pin("n1", "n2")
    assert pod_facts(raw).node == ""
    terms = pin("n1")["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    raw["spec"]["affinity"] = pin("n1")
    raw["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ] = [*terms, {"matchExpressions": []}]
    assert pod_facts(raw).node == ""


def test_the_holder_is_the_model_or_the_pod_itself() -> None:
    assert pod_facts(pod("x", namespace="team", labels=OURS)).holder == "team/llama"
    assert pod_facts(pod("x", namespace="team")).holder == "team/x"


def test_a_pod_that_the_kubelet_refused_says_why() -> None:
    raw = pod(phase="Failed")
    words = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"
    raw["status"] |= {"reason": "UnexpectedAdmissionError", "message": words}
    view = pod_facts(raw)
    assert (view.reason, view.message) == ("UnexpectedAdmissionError", words)


def test_a_pod_that_does_not_bind_says_why_in_the_scheduler_s_words() -> None:
    raw = pod(node=None, pinned="n1", phase="Pending", labels=OURS)
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes " * 99,
    }
    raw["status"]["conditions"] = ["odd", condition]
    view = pod_facts(raw)
    assert (view.scheduled, view.reason) == (False, "Unschedulable")
    assert view.message.startswith("0/3 nodes")
    assert len(view.message) == 256


def test_the_rest_of_a_view() -> None:
    raw = pod(labels=OURS | {"leaderworkerset.sigs.k8s.io/worker-index": "2", "app": "x"})
    raw["metadata"]["ownerReferences"] = [{"uid": "a"}, {"uid": "b", "controller": True}]
    raw["spec"]["schedulingGates"] = [{"name": "bowsprit.dev/placement"}]
    raw["status"] |= {"conditions": [{"type": "Ready", "status": "True"}]}
    view = pod_facts(raw)
    assert view.labels == OURS | {"leaderworkerset.sigs.k8s.io/worker-index": "2"}
    assert (view.owner_uid, view.gates) == ("b", ("bowsprit.dev/placement",))
    assert (view.ready, view.scheduled, view.uid) == (True, True, "uid-p1")


def test_views_share_their_strings() -> None:
    first, second = (pod_facts(pod(f"p{i}", namespace="".join(["te", "am"]))) for i in range(2))
    assert first.namespace is second.namespace
    assert sys.getsizeof(first) < 250


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "metadata": st.none()
            | st.dictionaries(st.sampled_from(["name", "labels", "uid", "ownerReferences"]), anything),
            "spec": anything
            | st.dictionaries(
                st.sampled_from(
                    ["nodeName", "affinity", "containers", "initContainers", "schedulingGates", "resources"]
                ),
                anything,
            ),
            "status": anything
            | st.dictionaries(
                st.sampled_from(["phase", "conditions", "containerStatuses", "reason", "message"]), anything
            ),
        },
    )
)
def test_no_pod_raises(raw: dict[str, Any]) -> None:
    view = pod_facts(raw)
    assert all(count > 0 for _, count in view.gpus)
    hash(view)
