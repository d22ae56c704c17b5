"""Several operators: one acts; another takes over when it is dead, and a late one writes nothing."""

from __future__ import annotations

import json

import pytest

from bowsprit.cluster import access
from bowsprit.cluster.client import FIELD_MANAGER
from tests.integration.arena import Arena, Json, OperatorProcess
from tests.integration.life import metric
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{access.NAMESPACE}/leases"
WRITTEN = (
    "/apis/bowsprit.dev/v1alpha1/namespaces/{}/modeldeployments",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/controllerrevisions",
    "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/events",
)


def test_one_acts_and_the_next_takes_over_from_a_frozen_and_from_a_dead_one(arena: Arena) -> None:
    nodes = arena.nodes(2, gpus=4)
    frozen = arena.operator("first")
    arena.wait("the first to lead", lambda: holder(arena) == "first")
    others = {name: arena.operator(name) for name in ("second", "third")}
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 4)).watching():
        arena.model("one")
        arena.wait_ready("one")
        assert [leads(operator) for operator in (frozen, *others.values())] == [True, False, False]

        frozen.pause()
        arena.patch("one", {"replicas": 2})
        arena.model("two", parallelism={"pipeline": 2, "gpusPerPod": 1})
        arena.wait("another to lead", lambda: holder(arena) in others)
        arena.wait_ready("one", "two")
        dead = others.pop(holder(arena))
        (last,) = others.values()
        assert leads(dead)
        assert not leads(last)

        # It wakes up in another world, and ends without a word to it.
        arena.wait("all to be at rest", lambda: at_rest(arena, "one", "two"))
        before = written(arena)
        frozen.resume()
        assert frozen.ended() == 1
        assert written(arena) == before
        assert "lease.lost" in frozen.log.read_text()

        dead.kill()
        arena.patch("two", {"replicas": 2})
        arena.wait_ready("two")
        assert leads(last)

    assert last.stop() == 0
    assert holder(arena) == ""
    successor = arena.operator("fourth")
    arena.model("three")
    arena.wait_ready("three")
    assert leads(successor)


def holder(arena: Arena) -> str:
    """Who the Lease names; "" for nobody."""
    items = arena.api.get(LEASES)["items"]
    specs = [item["spec"] for item in items if item["metadata"]["name"] == arena.namespace]
    return str(specs[0].get("holderIdentity") or "") if specs else ""


def leads(operator: OperatorProcess) -> bool:
    return metric(operator, "bowsprit_leader") == 1


def written(arena: Arena) -> dict[str, str]:
    """What operators have written, and when: their entries in every object's managedFields."""
    lists = [arena.api.get(path.format(arena.namespace))["items"] for path in WRITTEN]
    return {item["metadata"]["uid"]: _entries(item) for items in lists for item in items}


def _entries(item: Json) -> str:
    fields = item["metadata"].get("managedFields") or ()
    return json.dumps([entry for entry in fields if entry["manager"] == FIELD_MANAGER])


def at_rest(arena: Arena, *names: str) -> bool:
    return all(arena.condition(name, "Reconciling").get("status") == "False" for name in names)
