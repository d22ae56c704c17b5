"""From what is there and what is planned to the writes: state in, steps out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.controller.children import Child
from bowsprit.controller.frame import Declared, Frame
from bowsprit.controller.knowledge import Knowledge
from bowsprit.controller.replicas import match
from bowsprit.controller.steps import (
    BRIEF,
    FIRST_TO_GO,
    FORCED,
    PinId,
    Ranking,
    Steps,
    steps_of,
    workloads_wanted,
)
from bowsprit.inventory.pods import PodView
from bowsprit.plan.fleet import GpuNode
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ModelPlan, ReplicaPlan
from bowsprit.plan.spare import GPUS, Spare
from bowsprit.render.revision import revision_of
from bowsprit.status.replicas import RecordedReplica
from tests.unit.controller.objects import (
    NEW,
    OLD,
    ONE,
    THREE,
    UID,
    groups,
    pinned,
    pod,
    promise,
    rank,
    ranks,
    replica,
    workload,
)
from tests.unit.status.examples import FACTS

KEY = ModelKey("team", "llama")
DEPLOYMENT = ModelDeployment.model_validate(
    {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"namespace": "team", "name": "llama", "uid": UID, "creationTimestamp": "t"},
        "spec": {"model": {"uri": "hf://meta-llama/Llama-3.1-8B"}, "preflight": "Skip"},
    }
)
TARGET = replace(revision_of(DEPLOYMENT.spec, FACTS, "llama", {}), hash=NEW)
DEP, LWS, WAS = workload("dep", ONE), workload("lws", THREE), workload("was", THREE, OLD)
FREE = {f"n{number}": 1 for number in range(1, 7)}


def frame(
    pods: Sequence[PodView] = (),
    *recorded: RecordedReplica,
    children: Sequence[Child] = (DEP, LWS, WAS),
    strays: Sequence[Child] = (),
    **changes: Any,
) -> Frame:
    found = groups(list(children), pods, lambda view: view.finished)
    whole = Frame(
        declared=Declared(KEY, UID, 1, DEPLOYMENT, (), {}, False),
        knowledge=Knowledge(FACTS),
        children=tuple(children),
        strays=tuple(strays),
        groups=found,
        replicas=match(found, recorded, NEW, OLD),
        target=TARGET,
    )
    return replace(whole, **changes)


def planned(*replicas: ReplicaPlan, retire: Sequence[ReplicaPlan] = ()) -> ModelPlan:
    return ModelPlan(KEY, len(replicas), replicas, tuple(retire))


def steps(
    seen: Frame,
    plan: ModelPlan | None,
    free: dict[str, int] | None = None,
    gone: Sequence[str] = (),
) -> Steps:
    return steps_of(seen, plan, spare(FREE if free is None else free), gone)


def spare(free: dict[str, int], cpu: int = 64_000) -> Spare:
    """Nodes with so many GPUs free, and so many thousandths of a CPU."""
    return Spare(
        GpuNode(name, "nvidia.com/gpu", ONE.product, 81920, False, max(1, gpus), gpus, room={"cpu": cpu})
        for name, gpus in free.items()
    )


def pins(done: Steps) -> dict[str, str]:
    return {pin.pod.name: pin.node for pin in done.pins}


def deleted(done: Steps) -> dict[str, int | None]:
    """Pods that are deleted, and the grace that they are given."""
    return {each.name: each.grace_seconds for each in done.evictions}


WANTED = replica(0, THREE, "n1", "n2", "n3")

PINS: dict[str, tuple[list[PodView], dict[str, int], dict[str, str]]] = {
    "a whole group is pinned, rank by rank": (
        ranks("", "", ""),
        FREE,
        {"lws-0": "n1", "lws-0-1": "n2", "lws-0-2": "n3"},
    ),
    "a group that lacks a pod waits for it": (ranks("", ""), FREE, {}),
    "one missing GPU keeps the whole group back": (ranks("", "", ""), {**FREE, "n2": 0}, {}),
    "a node that is not there any more keeps the whole group back": (
        ranks("", "", ""),
        {"n1": 1, "n3": 1},
        {},
    ),
    "a group that was begun gets the rest of its nodes": (
        ranks("n2", "", ""),
        {**FREE, "n2": 0},
        {"lws-0-1": "n1", "lws-0-2": "n3"},
    ),
    "a group that stands needs nothing": (ranks("n1", "n2", "n3"), FREE, {}),
    "a group of an older revision gets nothing": (ranks("", "", "", of="was"), FREE, {}),
    "a broken group gets nothing": (
        [*ranks("", "")[:2], rank(pod("lws-0-2", "n3", phase="Failed"), 2)],
        FREE,
        {},
    ),
}


@pytest.mark.parametrize(("pods", "free", "expected"), PINS.values(), ids=PINS)
def test_pins(pods: list[PodView], free: dict[str, int], expected: dict[str, str]) -> None:
    recorded = promise(0, THREE, "n1", "n2", "n3")
    assert pins(steps(frame(pods, recorded), planned(WANTED), dict(free))) == expected


def test_pins_take_their_gpus_out_of_what_the_pass_has_left() -> None:
    free = spare({"n1": 1})
    waiting = [pod("dep-7d9f-a"), pod("dep-7d9f-b")]
    plan = planned(replica(0, ONE, "n1"), replica(1, ONE, "n1"))
    assert len(steps_of(frame(waiting), plan, free, ()).pins) == 1
    assert free["n1", GPUS] == 0
    assert steps_of(frame(waiting), plan, free, ()).pins == ()


def test_a_pod_is_pinned_only_where_its_cpu_is_free_too() -> None:
    """An old pod on its way out may hold the CPU that the new one is promised, while other GPUs are free."""
    waiting = [replace(pod(f"dep-7d9f-{name}"), needs=(("cpu", 4000), ("pods", 1))) for name in "ab"]
    plan = planned(replica(0, ONE, "n1"), replica(1, ONE, "n1"))
    done = steps_of(frame(waiting), plan, spare({"n1": 2}, cpu=7000), ())
    assert (len(done.pins), done.held_back) == (1, True)
    done = steps_of(frame(waiting), plan, spare({"n1": 2}, cpu=8000), ())
    assert (len(done.pins), done.held_back) == (2, False)


@pytest.mark.parametrize(
    ("pods", "free", "expected"),
    [
        pytest.param(ranks("", "", ""), FREE, False, id="its GPUs are free: it is pinned"),
        pytest.param(ranks("", "", ""), {**FREE, "n2": 0}, True, id="a GPU is still held by somebody"),
        pytest.param(ranks("", ""), {}, False, id="it waits for a pod, which will be seen"),
        pytest.param(ranks("n1", "n2", "n3"), {}, False, id="it stands"),
    ],
)
def test_a_model_is_held_back_while_only_gpus_are_missing(
    pods: list[PodView], free: dict[str, int], expected: bool
) -> None:
    recorded = promise(0, THREE, "n1", "n2", "n3")
    assert steps(frame(pods, recorded), planned(WANTED), dict(free)).held_back is expected


def test_a_group_that_goes_on_dying_gets_its_nodes_after_its_pause() -> None:
    waiting = frame(ranks("", "", ""), promise(0, THREE, "n1", "n2", "n3"))
    (group,) = waiting.groups
    done = steps_of(waiting, planned(WANTED), spare(FREE), (), paused={group.id})
    assert (done.pins, done.paused, done.held_back) == ((), True, False)
    done = steps_of(waiting, planned(WANTED), spare(FREE), (), paused=())
    assert (len(done.pins), done.paused) == (3, False)


def test_a_surplus_group_gets_no_node() -> None:
    waiting = [*ranks("", "", ""), *ranks("", "", "", group=1)]
    assert {name.rsplit("-", 1)[0] for name in pins(steps(frame(waiting), planned(WANTED)))} <= {
        "lws-0",
        "lws",
    }
    assert len(pins(steps(frame(waiting), planned(WANTED)))) == 3


WITH_A_FAILED_RANK = [*ranks("n1", "n2")[:2], rank(pod("lws-0-2", "n3", phase="Failed"), 2)]


def and_leaving(grace: int) -> list[PodView]:
    """LeaderWorkerSet has seen it first, and deletes the leader as its pod asks to be."""
    return [replace(WITH_A_FAILED_RANK[0], terminating=True, grace=grace), *WITH_A_FAILED_RANK[1:]]


GONE: dict[str, tuple[list[PodView], Sequence[str], dict[str, int | None]]] = {
    "a group with a failed rank goes whole and at once: the others can finish nothing": (
        WITH_A_FAILED_RANK,
        (),
        {"lws-0": BRIEF, "lws-0-1": BRIEF, "lws-0-2": BRIEF},
    ),
    "what others gave more time to gets no more than the rest": (
        and_leaving(90),
        (),
        {"lws-0": BRIEF, "lws-0-1": BRIEF, "lws-0-2": BRIEF},
    ),
    "what was told to end at once is not told again": (
        and_leaving(BRIEF),
        (),
        {"lws-0-1": BRIEF, "lws-0-2": BRIEF},
    ),
    "a failed pod that is a replica of its own goes as it asks to": (
        [pod("dep-7d9f-a", "n1", phase="Failed")],
        (),
        {"dep-7d9f-a": None},
    ),
    "a pod on its way out is not deleted again": (
        [*ranks("n1", "n2")[:2], rank(pod("lws-0-2", "n3", terminating=True), 2)],
        (),
        {},
    ),
    "a pod that a lost node will never let go is forced": (
        [*ranks("n1", "n2")[:2], rank(pod("lws-0-2", "n3", terminating=True), 2)],
        ("n3",),
        {"lws-0-2": FORCED},
    ),
    "of a broken group only the pods on lost nodes are forced": (
        [*ranks("n1", "n2")[:2], rank(pod("lws-0-2", "n3", phase="Failed"), 2)],
        ("n3",),
        {"lws-0": BRIEF, "lws-0-1": BRIEF, "lws-0-2": FORCED},
    ),
    "a pod that is pinned to a lost node and was never there needs no force": (
        [rank(pinned("lws-0", "n3", terminating=True), 0)],
        ("n3",),
        {},
    ),
    "pods on a node that does not answer stay while nobody deletes them": (
        ranks("n1", "n2", "n3"),
        ("n3",),
        {},
    ),
    "a group that no promise explains goes": (
        ranks("n1", "n9", ""),
        (),
        dict.fromkeys(["lws-0", "lws-0-1", "lws-0-2"]),
    ),
}


@pytest.mark.parametrize(("pods", "gone", "expected"), GONE.values(), ids=GONE)
def test_deletions(pods: list[PodView], gone: Sequence[str], expected: dict[str, int | None]) -> None:
    recorded = promise(0, THREE, "n1", "n2", "n3")
    assert deleted(steps(frame(pods, recorded), planned(WANTED), gone=gone)) == expected
    # The same while there is no plan: a config that cannot be read keeps no dead pods.
    assert deleted(steps(frame(pods, recorded), None, gone=gone)) == expected


def test_without_a_plan_nothing_else_is_touched() -> None:
    done = steps(frame(ranks("", "", "")), None)
    assert done == Steps()


def test_workloads_have_as_many_replicas_as_are_planned_and_others_go() -> None:
    done = steps(frame(), planned(WANTED, replica(1, THREE, "n4", "n5", "n6")))
    applied = {each["kind"]: each["spec"].get("replicas") for each in done.manifests if "spec" in each}
    assert applied["LeaderWorkerSet"] == 2
    assert {(each.kind, each.name) for each in done.deletions} >= {("Deployment", "dep")}


def test_a_name_that_is_still_taken_by_an_object_on_its_way_out_is_waited_for() -> None:
    manifests = steps(frame(), planned(WANTED)).manifests
    name = next(each["metadata"]["name"] for each in manifests if each["kind"] == "LeaderWorkerSet")
    stray = workload(name, THREE, terminating=True)
    done = steps(frame(strays=[stray]), planned(WANTED))
    assert "LeaderWorkerSet" not in {each["kind"] for each in done.manifests}
    assert name not in {each.name for each in done.deletions}


def test_what_an_earlier_object_of_the_same_name_has_left_is_deleted() -> None:
    stray = workload("left", ONE, owner="uid-of-another", revision=OLD)
    assert "left" in {each.name for each in steps(frame(strays=[stray]), planned(WANTED)).deletions}


COSTS: dict[str, tuple[bool, str, Sequence[str | None]]] = {
    "a pod that scaling down is to take": (True, "", [FIRST_TO_GO]),
    "one that knows it already": (True, FIRST_TO_GO, []),
    "one that somebody wants to keep": (True, "100", [FIRST_TO_GO]),
    "a pod that stays": (False, "", []),
    "one that was to go, before the plan changed or the operator was killed": (False, FIRST_TO_GO, [None]),
    "one that somebody else has given a cost": (False, "100", []),
}


@pytest.mark.parametrize("revision", [NEW, OLD], ids=["the target revision", "an older one"])
@pytest.mark.parametrize(("goes", "cost", "written"), COSTS.values(), ids=COSTS)
def test_deletion_costs_follow_the_plan(
    goes: bool, cost: str, written: Sequence[str | None], revision: str
) -> None:
    standing = [pod("dep-7d9f-a", "n1", deletion_cost=cost), pod("dep-7d9f-b", "n2")]
    recorded = [promise(0, ONE, "n1", revision=revision), promise(1, ONE, "n2", revision=revision)]
    seen = frame(standing, *recorded, children=[workload("dep", ONE, revision)])
    one, other = replica(0, ONE, "n1"), replica(1, ONE, "n2")
    plan = planned(other, retire=[one]) if goes else planned(one, other)
    assert steps(seen, plan).rankings == tuple(Ranking(standing[0], each) for each in written)


def test_groups_of_a_leader_worker_set_have_no_cost() -> None:
    recorded = promise(0, THREE, "n1", "n2", "n3")
    assert steps(frame(ranks("n1", "n2", "n3"), recorded), planned(retire=[WANTED])).rankings == ()


def test_a_pin_that_may_have_come_true_needs_no_gpu_more() -> None:
    """Its GPUs are off what is free: the group would wait for itself."""
    waiting = ranks("", "", "")
    recorded = promise(0, THREE, "n1", "n2", "n3")
    free = spare({"n1": 0, "n2": 1, "n3": 1})
    done = steps_of(
        frame(waiting, recorded), planned(WANTED), free, (), unanswered={PinId(waiting[0].uid, "n1")}
    )
    assert pins(done) == {"lws-0": "n1", "lws-0-1": "n2", "lws-0-2": "n3"}
    assert [free[node, GPUS] for node in ("n1", "n2", "n3")] == [0, 0, 0]


def test_of_two_old_revisions_on_the_same_nodes_the_one_that_is_retired_goes() -> None:
    """Same layout, same node: only the number tells them apart."""
    passed = workload("passed", ONE, "in between")
    ready = [pod("was-one-7d9f-a", "n1"), pod("passed-7d9f-a", "n1")]
    recorded = [promise(0, ONE, "n1", revision=OLD), promise(1, ONE, "n1", revision="in between")]
    seen = frame(ready, *recorded, children=[workload("was-one", ONE, OLD), passed])
    for gone in (0, 1):
        wanted = workloads_wanted(seen, planned(retire=[replica(gone, ONE, "n1")]))
        assert wanted == {(("in between", OLD)[gone], ONE): 1}


def test_steps_are_the_same_when_asked_again() -> None:
    seen = frame(ranks("n1", "", ""), promise(0, THREE, "n1", "n2", "n3"))
    assert steps(seen, planned(WANTED)) == steps(seen, planned(WANTED))
