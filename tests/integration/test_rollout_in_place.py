"""A rollout where no GPU is spare: replica by replica, on exactly the GPUs that are given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.integration.arena import Arena, OperatorProcess
from tests.integration.life import (
    TWO_PODS,
    become_ready,
    engine,
    events,
    never_ready,
    revision_of,
    target,
    uids,
)
from tests.integration.referee import Referee, is_ready

pytestmark = pytest.mark.integration

REPLICAS = 3
shapes = pytest.mark.parametrize(
    ("shape", "pods"), [({}, 1), (TWO_PODS, 2)], ids=["a Deployment", "a LeaderWorkerSet"]
)


@shapes
def test_all_but_one_replica_serve_until_the_new_ones_do(
    stage: Arena, shape: Mapping[str, Any], pods: int
) -> None:
    gpus = REPLICAS * pods
    nodes = stage.nodes(1, gpus=gpus)
    stage.model("chat", replicas=REPLICAS, **shape)
    stage.wait_ready("chat")
    stage.model("rival")
    stage.wait_reason("rival", "GPUsReserved", "WaitingForGPUs")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, gpus)).watching() as referee:
        stage.wait("the referee to see all pods", lambda: gpus in referee.ready)
        begin = len(referee.ready)
        stage.patch("chat", {"engine": engine("--enable-prefix-caching")})
        new = target(stage, "chat")
        stage.wait_ready("chat")
        stage.wait("all pods to be new", lambda: {revision_of(pod) for pod in stage.pods("chat")} == {new})
    assert min(referee.ready[begin - 1 :]) >= (REPLICAS - 1) * pods
    assert "Reserved" not in {event["reason"] for event in events(stage, "rival")}


def test_a_new_revision_that_does_not_come_up_costs_one_replica(
    stage: Arena, operator: OperatorProcess
) -> None:
    stage.nodes(1, gpus=REPLICAS)
    stage.model("chat", replicas=REPLICAS)
    stage.wait_ready("chat")
    before = uids(stage, "chat")
    stage.patch("chat", never_ready(engine=engine("--enable-prefix-caching")))
    new = target(stage, "chat")
    planned = stage.wait_reason("chat", "Planned", "RollingOut")
    assert planned["message"] == (
        "1 of 3 replicas planned. 2 replicas of the new revision take the place of old ones, which serve on "
        "2 GPUs until then: the next goes when the new ones that are starting are Ready."
    )
    assert "waiting" not in stage.status("chat")

    def new_pods() -> list[dict[str, Any]]:
        found = [pod for pod in stage.pods("chat") if revision_of(pod) == new]
        return [pod for pod in found if pod["status"].get("phase") == "Running"]

    stage.wait("the first new pod to run", lambda: len(new_pods()) == 1)
    operator.kill()
    operator.start()
    stage.patch("chat", {"priority": 5})
    stage.wait("the new operator", lambda: "Waiting" not in stage.status("chat")["phase"])
    assert len(before & uids(stage, "chat")) == REPLICAS - 1
    for number in range(1, REPLICAS + 1):
        become_ready(stage, *(pod for pod in new_pods() if not is_ready(pod)))
        expected = min(number + 1, REPLICAS)
        stage.wait(f"{expected} new pods", lambda expected=expected: len(new_pods()) == expected)
    stage.wait_ready("chat")
