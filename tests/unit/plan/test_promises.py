"""What was promised and has no pods on its nodes yet: kept, unless the nodes would turn the pods away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.plan.fleet import Fleet, Taint, Toleration
from bowsprit.plan.planner import plan
from bowsprit.plan.wish import Accelerator
from tests.unit.plan.examples import SXM, measured, node

ON = Fleet((node("a", 4, 4, labels={"pool": "x"}), node("b", 8, 8, labels={"pool": "x"})))
ASKED = measured(
    "m",
    (1, 3),
    accelerator=Accelerator(node_selector=(("pool", "x"),), tolerations=(Toleration("mine", "Exists"),)),
)


def nodes_of(change):
    """Where the replica goes after node a has changed, promised to a before."""
    promised = plan([ASKED], ON).models[0].replicas
    assert [pod.node for pod in promised[0].pods] == ["a"]
    on = replace(ON, nodes=(replace(ON.nodes[0], **change), ON.nodes[1]))
    (replica,) = plan([replace(ASKED, promised=promised)], on).models[0].replicas
    return {pod.node for pod in replica.pods}


@pytest.mark.parametrize(
    "change",
    [
        {"taints": (Taint("other", "", "NoSchedule"),)},
        {"taints": (Taint("other", "", "NoExecute"),)},
        {"labels": {"pool": "y"}},
        {"product": SXM},
        {"resource": "amd.com/gpu"},
        {"free": 2},
        {"name": "other", "free": 0},
    ],
    ids=["tainted", "to be evicted", "another pool", "other GPUs", "other resource", "taken", "gone"],
)
def test_a_promise_on_a_node_that_takes_its_pods_no_more_is_planned_anew(change):
    assert nodes_of(change) == {"b"}


@pytest.mark.parametrize(
    "change",
    [
        {"taints": (Taint("other", "", "PreferNoSchedule"),)},
        {"taints": (Taint("mine", "", "NoSchedule"),)},
        {"labels": {"pool": "x", "zone": "1"}},
        {"free": 3},
        {"linked": True},
    ],
    ids=["a preference", "tolerated", "another label", "just enough", "links"],
)
def test_a_promise_is_kept_through_what_does_not_matter(change):
    assert nodes_of(change) == {"a"}
