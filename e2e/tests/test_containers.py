"""What every other test stands on: containers run, names resolve, Services and groups work."""

from __future__ import annotations

import pytest

from e2e.tests.stage import SMALL, Stage

pytestmark = pytest.mark.e2e

SERVE = "python3 -m http.server 8000"
GREET = (
    "import os, urllib.request; "
    "print(urllib.request.urlopen('http://%s:8000' % os.environ['LWS_LEADER_ADDRESS'], timeout=5).status)"
)


def test_pod_reaches_another_through_a_service_by_name(stage: Stage) -> None:
    stage.run("web", "python3", "-m", "http.server", "8000")
    stage.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]},
        }
    )
    stage.wait_for("pod/web", "condition=Ready")
    stage.wait("an answer of the Service", lambda: stage.ask(f"http://web.{stage.namespace}.svc/")[0] == 200)


def test_group_of_two_pods_spreads_over_two_nodes_and_finds_its_leader(stage: Stage) -> None:
    if len(stage.target.nodes()) < 2:
        pytest.skip("needs two nodes")
    stage.apply(leader_worker_set("group", stage.target.engine))
    stage.wait_for("pod/group-0", "condition=Ready", 120)
    stage.wait_for("pod/group-0-1", "condition=Ready", 120)
    nodes = {pod["spec"]["nodeName"] for pod in stage.pods("leaderworkerset.sigs.k8s.io/name=group")}
    assert len(nodes) == 2
    stage.wait(
        "the worker to reach its leader by name",
        lambda: stage.execute("group-0-1", "python3", "-c", GREET).strip() == "200",
    )


def leader_worker_set(name: str, image: str) -> dict[str, object]:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    container = {"name": "main", "image": image, "command": SERVE.split(), "resources": SMALL}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "affinity": apart, "terminationGracePeriodSeconds": 1},
    }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    }
