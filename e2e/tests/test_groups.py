"""Three ranks on two nodes: more pods than nodes, without Ray, and with one head that drains for all."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from e2e.tests.clients import clients
from e2e.tests.stage import PROMPT, Stage
from e2e.tests.targets import OWN

pytestmark = pytest.mark.e2e

NAME = "three-pods"
PATIENT = {"spec": {"terminationGracePeriodSeconds": 300}}
"""The machine may be busy, and then an answer takes minutes."""


@pytest.fixture
def three_gpus(stage: Stage) -> Iterator[None]:
    """Two nodes with three GPUs, none of which can hold the group alone."""
    resource, nodes = stage.target.resource, stage.target.get("nodes")["items"]
    gpus = {each["metadata"]["name"]: int(each["status"]["allocatable"].get(resource, 0)) for each in nodes}
    most = max(gpus, key=lambda name: gpus[name])
    if len(gpus) < 2 or (OWN and sum(gpus.values()) < 3):
        pytest.skip("needs two nodes with three GPUs")
    if sum(gpus.values()) >= 3:
        yield
        return
    say_gpus(stage, most, 2)
    yield
    say_gpus(stage, most, gpus[most])


def say_gpus(stage: Stage, node: str, count: int) -> None:
    """Lets a node say that it had so many GPUs."""
    resource = stage.target.resource
    status = {"capacity": {resource: str(count)}, "allocatable": {resource: str(count)}}
    stage.kubectl("label", "node", node, f"{resource}.count={count}", "--overwrite")
    stage.kubectl("patch", "node", node, "--subresource=status", "--patch", json.dumps({"status": status}))


@pytest.mark.usefixtures("three_gpus")
def test_three_ranks_on_two_nodes_say_what_one_pod_says_and_finish_what_is_under_way(
    stage: Stage, said_by_one_pod: str
) -> None:
    parallelism = {"pipeline": 3, "gpusPerPod": 1}
    stage.model(NAME, preflight="Skip", parallelism=parallelism, template=PATIENT)
    stage.wait_ready(NAME, 600)
    ranks = stage.engines(NAME)
    assert sorted(Counter(pod["spec"]["nodeName"] for pod in ranks).values()) == [1, 2]
    assert stage.complete(NAME, PROMPT) == said_by_one_pod
    with clients(stage, NAME, ["long", "long"], long_tokens=60) as asking:
        stage.wait("requests to be under way", lambda: is_asked(stage, NAME))
        deleted = time.time()
        stage.remove(NAME, 400)
    assert asking.under_way(deleted)
    assert not asking.failed(before=deleted)


def is_asked(stage: Stage, model: str) -> bool:
    """Whether its vLLM works on a request."""
    status, metrics = stage.ask(f"{stage.url(model)}/metrics")
    running = [line for line in metrics.splitlines() if line.startswith("vllm:num_requests_running{")]
    return status == 200 and any(float(line.split()[-1]) for line in running)
