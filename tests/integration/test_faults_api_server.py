"""The API server and its data store go away and come back: the operator reconnects, and nothing is lost."""

from __future__ import annotations

import time

import pytest

from bowsprit.cluster.lease import RENEW_DEADLINE_S
from e2e.cluster.waiting import wait_until
from tests.integration.arena import Arena, OperatorProcess
from tests.integration.faults import bound_gpus
from tests.integration.life import engine, metric, uids
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
def test_a_crash_is_survived_in_the_middle_of_work(arena: Arena, program: str) -> None:
    nodes = arena.nodes(3, gpus=2)
    operator = arena.operator()
    arena.model("single", replicas=2)
    arena.model("group", parallelism={"pipeline": 2, "gpusPerPod": 1})
    arena.wait_ready("single", "group")
    kept = uids(arena, "single")
    arena.patch("group", {"engine": engine("--max-num-seqs=64")})

    arena.cluster.kill_program(program)
    arena.cluster.start_program(program)
    arena.wait("the API server", lambda: arena.api.answers("/readyz"))
    arena.model("after")
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 2)).watching():
        arena.wait_ready("single", "group", "after", seconds=90)
    assert operator.running
    assert uids(arena, "single") == kept
    assert sum(bound_gpus(arena).values()) == 5
    assert "--max-num-seqs=64" in str(arena.pods("group")[0]["spec"])


def test_a_long_absence_costs_at_most_the_lease(arena: Arena) -> None:
    """Longer than a Lease may go without renewal: the process may have to end, and the next one goes on."""
    nodes = arena.nodes(2, gpus=2)
    operator = arena.operator()
    arena.model("single", replicas=2)
    arena.wait_ready("single")
    kept = uids(arena, "single")
    arena.cluster.kill_program("kube-apiserver")
    began = time.monotonic()
    wait_until("the absence to be long", lambda: time.monotonic() - began > RENEW_DEADLINE_S, 60)
    arena.cluster.start_program("kube-apiserver")
    arena.wait("the API server", lambda: arena.api.answers("/readyz"))
    arena.wait("the operator to be well or to have ended", lambda: not operator.running or well(operator))
    if not operator.running:
        assert operator.ended() == 1
        operator.start()
    arena.model("after", parallelism={"pipeline": 2})
    arena.wait_ready("single", "after", seconds=90)
    assert uids(arena, "single") == kept
    assert bound_gpus(arena) == dict.fromkeys(nodes, 2)


def well(operator: OperatorProcess) -> bool:
    return metric(operator, "bowsprit_leader") == 1
