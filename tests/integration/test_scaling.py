"""The number of replicas, moved by hand and by a real autoscaler, within the joint plan."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from e2e.cluster.control_plane import ControlPlane
from tests.integration.arena import Arena, Json, Referee
from tests.integration.life import TWO_PODS, revisions, uids, workloads

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

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
METRIC = "requests_waiting"


class Metrics(BaseHTTPRequestHandler):
    """A metrics adapter that knows one number, of every Service."""

    value: ClassVar[int] = 1

    def do_GET(self) -> None:
        match self.path.split("?")[0].strip("/").split("/"):
            case ["apis", _, _]:
                self._reply(HTTPStatus.OK, _discovery())
            case ["apis", _, _, "namespaces", namespace, "services", name, _]:
                self._reply(HTTPStatus.OK, _values(namespace, name, self.value))
            case _:
                self._reply(HTTPStatus.NOT_FOUND, {})

    def _reply(self, status: HTTPStatus, answer: Json) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps the test's output clean."""


def _discovery() -> Json:
    resource = {
        "name": f"services/{METRIC}",
        "singularName": "",
        "namespaced": True,
        "kind": "MetricValueList",
        "verbs": ["get"],
    }
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [resource],
    }


def _values(namespace: str, name: str, value: int) -> Json:
    item = {
        "describedObject": {"apiVersion": "v1", "kind": "Service", "namespace": namespace, "name": name},
        "metric": {"name": METRIC},
        "timestamp": "2026-01-01T00:00:00Z",
        "value": str(value),
    }
    return {"kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": [item]}


@pytest.fixture
def metrics(control_plane: ControlPlane) -> Iterator[type[Metrics]]:
    """A served metrics API; set `.value` to what it should answer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    server.socket = control_plane.serving_context(GROUP).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    control_plane.register_api(GROUP, VERSION, server.server_port)
    yield Metrics
    control_plane.kubectl("delete", "apiservice", f"{VERSION}.{GROUP}")
    server.shutdown()
    thread.join()
    server.server_close()


def autoscaler(namespace: str, model: str) -> Json:
    """Wants one replica for every ten requests that wait."""
    metric = {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": model},
            "metric": {"name": METRIC},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
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
            "metrics": [metric],
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
