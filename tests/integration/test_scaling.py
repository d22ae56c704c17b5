"""The number of replicas, moved by hand and by a real autoscaler, within the joint plan."""

from __future__ import annotations

import pytest

from tests.integration.arena import Arena, Json
from tests.integration.life import TWO_PODS, revisions, uids, workloads
from tests.integration.metrics_api import Metrics, waiting_metric
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration

LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"


def scale(arena: Arena, model: str, replicas: int) -> None:
    arena.kubectl("scale", "mdep", model, f"--replicas={replicas}")


def wait_pods(arena: Arena, model: str, pods: int) -> None:
    arena.wait(f"{pods} pods of {model}", lambda: len(arena.pods(model)) == pods)


def test_a_deployment_is_scaled_and_gives_up_the_replica_that_the_plan_retires(stage: Arena) -> None:
    nodes = stage.nodes(3, gpus=1)
    stage.model("chat", replicas=1)
    stage.wait_ready("chat")
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 1)).watching():
        scale(stage, "chat", 3)
        stage.wait_ready("chat")
        status = stage.status("chat")
        assert (status["replicas"], status["readyReplicas"], status["gpus"]) == (3, 3, 3)
        by_node = {pod["spec"]["nodeName"]: pod["metadata"]["uid"] for pod in stage.pods("chat")}
        kept = {entry["pods"][0]["node"] for entry in status["plan"]["replicas"] if entry["index"] in (0, 1)}
        scale(stage, "chat", 2)
        wait_pods(stage, "chat", 2)
        stage.wait_ready("chat")
    assert uids(stage, "chat") == {by_node[node] for node in kept}
    assert len(revisions(stage, "chat")) == 1
    scale(stage, "chat", 0)
    wait_pods(stage, "chat", 0)
    stage.wait_ready("chat")
    assert stage.condition("chat", "Ready")["message"] == "Scaled to 0 replicas, as asked: nothing serves."


def test_a_leader_worker_set_gives_up_its_last_group(stage: Arena) -> None:
    nodes = stage.nodes(3, gpus=2)
    stage.model("chat", replicas=3, **TWO_PODS)
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 2)).watching():
        stage.wait_ready("chat")
        first = {
            pod["metadata"]["uid"]
            for pod in stage.pods("chat")
            if pod["metadata"]["labels"][LWS_GROUP] == "0"
        }
        scale(stage, "chat", 1)
        wait_pods(stage, "chat", 2)
        assert uids(stage, "chat") == first
        stage.wait_ready("chat")
        scale(stage, "chat", 2)
        stage.wait_ready("chat")
    assert first < uids(stage, "chat")


def test_what_fits_is_placed_whole_and_the_rest_waits_with_numbers(stage: Arena) -> None:
    stage.nodes(1, gpus=3)
    stage.model("chat", replicas=1, **TWO_PODS)
    stage.wait_ready("chat")
    scale(stage, "chat", 2)
    reserved = stage.wait_reason("chat", "GPUsReserved", "WaitingForGPUs")
    assert "1 of 2 replicas" in reserved["message"]
    assert "1 free, 1 short" in reserved["message"]
    assert stage.status("chat")["waiting"]["gpusShort"] == 1
    assert len(stage.pods("chat")) == 2
    assert stage.condition("chat", "Available")["status"] == "True"
    stage.nodes(1, gpus=1)
    stage.wait_ready("chat")
    assert "waiting" not in stage.status("chat")


# ---- a HorizontalPodAutoscaler ---------------------------------------------------------------------------


def autoscaler(namespace: str, model: str) -> Json:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": model, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "bowsprit.dev/v1alpha1",
                "kind": "ModelDeployment",
                "name": model,
            },
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [waiting_metric(model)],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def test_an_autoscaler_moves_the_replicas_and_gpus_follow(stage: Arena, metrics: type[Metrics]) -> None:
    """The manifest says nothing of replicas; `kubectl scale` sets them once, because the API server shows no
    scale of an object without them."""
    nodes = stage.nodes(1, gpus=3)
    stage.model("chat")
    stage.wait_ready("chat")
    scale(stage, "chat", 1)
    metrics.value = 25
    stage.apply(autoscaler(stage.namespace, "chat"))
    with Referee(stage.cluster, stage.namespace, dict.fromkeys(nodes, 3)).watching():
        # Autoscalers learn of a new API within 30 s.
        stage.wait("three replicas", lambda: stage.get("chat")["spec"].get("replicas") == 3, seconds=90)
        stage.wait_ready("chat")
        metrics.value = 5
        stage.wait("one replica", lambda: stage.get("chat")["spec"].get("replicas") == 1)
        wait_pods(stage, "chat", 1)
        stage.wait_ready("chat")
    (workload,) = workloads(stage, "chat").values()
    assert workload["spec"]["replicas"] == 1
    stage.model("chat", priority=1)
    assert stage.get("chat")["spec"]["replicas"] == 1


def test_without_replicas_one_runs_and_the_operator_leaves_the_field_alone(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.model("chat")
    stage.wait_ready("chat")
    assert "replicas" not in stage.get("chat")["spec"]
