"""What the API server said to those who create pods, and when it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bowsprit.cluster.cache import ObjectKey
from bowsprit.cluster.resources import DEPLOYMENTS
from bowsprit.controller.book import Book
from bowsprit.controller.complaints import Complaint, project, refusals
from bowsprit.controller.queue import WorkQueue
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey
from tests.unit.controller.objects import OLD, THREE, pod, ranks, workload
from tests.unit.controller.test_steps import frame

AT = "2026-11-30T12:00:00Z"
QUOTA = "forbidden: exceeded quota: team, requested: pods=1, used: pods=0, limited: pods=0"


def event(kind: str, name: str, message: str, **times: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": f"{name}.1", "resourceVersion": "5"},
        "involvedObject": {"kind": kind, "name": name},
        "message": message,
        "reason": "FailedCreate",
        **(times or {"lastTimestamp": AT}),
    }


SAID = {
    "a ReplicaSet's": (
        event("ReplicaSet", "dep-7d9f", f'Error creating: pods "dep-7d9f-x2x4" is {QUOTA}'),
        Complaint("team", "dep-7d9f", QUOTA, AT),
    ),
    "a StatefulSet's": (
        event(
            "StatefulSet", "lws", f'create Pod lws-0 in StatefulSet lws failed error: pods "lws-0" is {QUOTA}'
        ),
        Complaint("team", "lws", QUOTA, AT),
    ),
    "words of another form are kept": (
        event("ReplicaSet", "dep-7d9f", "Error creating: Internal error occurred"),
        Complaint("team", "dep-7d9f", "Error creating: Internal error occurred", AT),
    ),
    "the last time counts, wherever it is written": (
        event("ReplicaSet", "dep-7d9f", "no", series={"lastObservedTime": AT}, lastTimestamp=None),
        Complaint("team", "dep-7d9f", "no", AT),
    ),
    "a DaemonSet's is none of ours": (event("DaemonSet", "train", "no"), None),
    "one without words": (event("ReplicaSet", "dep-7d9f", ""), None),
}


@pytest.mark.parametrize(("told", "expected"), SAID.values(), ids=SAID)
def test_a_complaint_is_the_api_servers_words(told: dict[str, Any], expected: Complaint | None) -> None:
    assert project(told) == expected


DEP = workload("dep", replicas=2, applied=AT)
LWS = workload("lws", THREE, replicas=1, applied=AT)


def told(child: Any) -> Complaint:
    return Complaint("team", child.name, QUOTA, AT)


def test_it_counts_while_pods_are_missing() -> None:
    pods = [pod("dep-7d9f-a"), *ranks("", "")]
    found = refusals(frame(pods, children=(DEP, LWS)), told)
    assert [(each.target, each.message) for each in found] == [
        ("Deployment/dep", QUOTA),
        ("LeaderWorkerSet/lws", QUOTA),
    ]
    whole = [pod("dep-7d9f-a"), pod("dep-7d9f-b"), *ranks("", "", "")]
    assert refusals(frame(whole, children=(DEP, LWS)), told) == ()


def test_one_from_before_our_last_change_explains_nothing() -> None:
    later = replace(DEP, applied="2026-11-30T12:00:01Z")
    assert refusals(frame(children=(later,)), told) == ()


def test_what_is_said_of_an_older_revision_is_no_fault_of_the_one_that_is_planned() -> None:
    """It would begin the clock of its trial while it waits for GPUs."""
    old = replace(DEP, name="old", revision=OLD)
    found = refusals(frame(children=(old, DEP)), told)
    assert [each.target for each in found] == ["Deployment/dep"]


async def test_a_complaint_finds_its_model_and_is_forgotten_with_its_event() -> None:
    queue: WorkQueue[ModelKey] = WorkQueue()
    book = Book(queue, ProductTable())
    meta = {"namespace": "team", "name": "dep", "uid": "u", "labels": {"bowsprit.dev/model": "llama"}}
    book.children[DEPLOYMENTS].upsert({"metadata": meta, "spec": {}})
    queue.take_more()
    said = event("ReplicaSet", "dep-7d9f", f'Error creating: pods "dep-7d9f-x2x4" is {QUOTA}')
    book.complaints.upsert(said)
    child = book.children[DEPLOYMENTS].get(ObjectKey("team", "dep"))
    assert child is not None
    assert queue.take_more() == {ModelKey("team", "llama")}
    complaint = book.complaint_about(child)
    assert complaint is not None
    assert complaint.message == QUOTA
    book.complaints.remove({**said, "metadata": {**said["metadata"], "resourceVersion": "6"}})
    assert book.complaint_about(child) is None
