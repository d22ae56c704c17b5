"""The control plane passes metrics requests on to a server of a test, and autoscalers act on what it
answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.waiting import wait_until

pytestmark = pytest.mark.integration

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
METRIC = "requests_waiting"


class Metrics(BaseHTTPRequestHandler):
    """A metrics adapter that knows one number."""

    value: ClassVar[int] = 1

    def do_GET(self) -> None:
        match self.path.split("?")[0].strip("/").split("/"):
            case ["apis", group, version]:
                self._reply(HTTPStatus.OK, resources(f"{group}/{version}"))
            case ["apis", group, version, "namespaces", namespace, "services", name, _]:
                self._reply(HTTPStatus.OK, values(f"{group}/{version}", namespace, name, self.value))
            case _:  # the API server also asks for OpenAPI schemas, which need not exist
                self._reply(HTTPStatus.NOT_FOUND, {})

    def _reply(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps the test's output clean."""


def resources(group_version: str) -> dict[str, Any]:
    """The discovery document. Autoscalers see no version of the group that lists no resource."""
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
        "groupVersion": group_version,
        "resources": [resource],
    }


def values(group_version: str, namespace: str, name: str, value: int) -> dict[str, Any]:
    item = {
        "describedObject": {"apiVersion": "v1", "kind": "Service", "namespace": namespace, "name": name},
        "metric": {"name": METRIC},
        "timestamp": "2026-01-01T00:00:00Z",
        "value": str(value),
    }
    return {"kind": "MetricValueList", "apiVersion": group_version, "metadata": {}, "items": [item]}


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


def test_autoscaler_follows_a_metric_of_an_aggregated_api(
    control_plane: ControlPlane, namespace: str, metrics: type[Metrics]
) -> None:
    control_plane.apply(deployment(namespace), autoscaler(namespace))
    metrics.value = 30

    api, path = control_plane.api(), f"/apis/apps/v1/namespaces/{namespace}/deployments/engine"
    # The autoscaler learns of new APIs every 30 s.
    wait_until("three replicas", lambda: api.get(path)["spec"]["replicas"] == 3, seconds=90)


def deployment(namespace: str) -> dict[str, Any]:
    labels = {"app": "engine"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "engine", "image": "none"}]},
            },
        },
    }


def autoscaler(namespace: str) -> dict[str, Any]:
    """Wants one replica for every ten requests that wait at the Service."""
    metric = {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "engine"},
            "metric": {"name": METRIC},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "engine"},
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [metric],
        },
    }
