"""The control plane passes metrics requests on to a server of a test, and autoscalers act on what it
answers."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.waiting import wait_until
from tests.integration.metrics_api import Metrics, waiting_metric

pytestmark = pytest.mark.integration


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
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "engine", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "engine"},
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [waiting_metric("engine")],
        },
    }
