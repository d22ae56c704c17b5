"""A metrics API that knows one number: an adapter such as Prometheus', as far as autoscalers look at it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from e2e.cluster.control_plane import ControlPlane

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
METRIC = "requests_waiting"


class Metrics(BaseHTTPRequestHandler):
    """Answers with one number, for every Service."""

    value: ClassVar[int] = 1

    def do_GET(self) -> None:
        match self.path.split("?")[0].strip("/").split("/"):
            case ["apis", group, version]:
                self._reply(HTTPStatus.OK, _resources(f"{group}/{version}"))
            case ["apis", group, version, "namespaces", namespace, "services", name, _]:
                self._reply(HTTPStatus.OK, _values(f"{group}/{version}", namespace, name, self.value))
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


def _resources(group_version: str) -> dict[str, Any]:
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


def _values(group_version: str, namespace: str, name: str, value: int) -> dict[str, Any]:
    item = {
        "describedObject": {"apiVersion": "v1", "kind": "Service", "namespace": namespace, "name": name},
        "metric": {"name": METRIC},
        "timestamp": "2026-01-01T00:00:00Z",
        "value": str(value),
    }
    return {"kind": "MetricValueList", "apiVersion": group_version, "metadata": {}, "items": [item]}


@contextmanager
def served_metrics(cluster: ControlPlane) -> Iterator[type[Metrics]]:
    """A served metrics API; set `.value` to what it should answer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    server.socket = cluster.serving_context(GROUP).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    cluster.register_api(GROUP, VERSION, server.server_port)
    yield Metrics
    cluster.kubectl("delete", "apiservice", f"{VERSION}.{GROUP}")
    server.shutdown()
    thread.join()
    server.server_close()


def waiting_metric(service: str) -> dict[str, Any]:
    """A HorizontalPodAutoscaler's metric: one replica for every ten requests that wait at the Service."""
    return {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": service},
            "metric": {"name": METRIC},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
