"""Pods that go while they are asked: what is under way finishes, and nobody is answered with an error."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from e2e.tests.clients import Clients, clients
from e2e.tests.stage import PROMPT, Stage

pytestmark = pytest.mark.e2e

NAME = "leaves"
KINDS = ("short", "kept", "long", "long", "long")
PROBE_TOKENS = 64
LONG_SECONDS = 5.0
"""Alone; several at a time on a few cores are under way when the pre-stop of a pod has lasted its least."""
GRACE_SECONDS = 300
PATIENT = {"spec": {"terminationGracePeriodSeconds": GRACE_SECONDS}}
"""The machine may be busy, and then a long answer takes minutes."""


@pytest.fixture(scope="module")
def replicas(stage: Stage) -> Iterator[str]:
    """A model of two replicas."""
    capacity = {"maxModelLen": 2048, "concurrency": 4}
    stage.model(NAME, preflight="Skip", replicas=2, capacity=capacity, template=PATIENT)
    stage.wait_ready(NAME, 600)
    yield NAME
    stage.remove(NAME, 400)


@pytest.fixture(scope="module")
def long_tokens(stage: Stage, replicas: str) -> int:
    """What an answer has that takes LONG_SECONDS on this machine."""
    start = time.monotonic()
    stage.complete(replicas, PROMPT, PROBE_TOKENS)
    rate = PROBE_TOKENS / (time.monotonic() - start)
    return max(200, min(int(rate * LONG_SECONDS), 2000))


def busy_pod(stage: Stage) -> str:
    """A pod of the model that works on a long request."""
    found: list[str] = []

    def look() -> bool:
        for pod in stage.engines(NAME):
            _, metrics = stage.ask(f"http://{pod['status']['podIP']}:8000/metrics")
            running = [line for line in metrics.splitlines() if line.startswith("vllm:num_requests_running{")]
            if any(float(line.split()[-1]) for line in running):
                found.append(pod["metadata"]["name"])
        return bool(found)

    stage.wait("a pod to be busy", look)
    return found[0]


def are_gone(stage: Stage, *pods: str) -> bool:
    """Also those that are on their way out."""
    return not {each["metadata"]["name"] for each in stage.get("pods")["items"]} & set(pods)


def assert_all_finished(asking: Clients, since: float) -> None:
    assert {each.kind for each in asking.under_way(since)} >= {"long"}
    assert {each.kind for each in asking.requests if each.begin > since} >= {"short", "kept"}
    assert not asking.failed()


def test_no_request_is_lost_when_one_of_two_pods_is_deleted(
    stage: Stage, replicas: str, long_tokens: int
) -> None:
    with clients(stage, replicas, KINDS, long_tokens) as asking:
        pod, since = busy_pod(stage), time.time()
        stage.kubectl("delete", "pod", pod, "--wait=false")
        stage.wait("the pod to be gone", lambda: are_gone(stage, pod), GRACE_SECONDS)
    assert_all_finished(asking, since)


def test_no_request_is_lost_when_a_replica_is_given_up(stage: Stage, replicas: str, long_tokens: int) -> None:
    stage.wait_ready(replicas, 600)
    before = [each["metadata"]["name"] for each in stage.engines(replicas)]
    with clients(stage, replicas, KINDS, long_tokens) as asking:
        busy_pod(stage)
        since = time.time()
        stage.kubectl("scale", "mdep", replicas, "--replicas=1")
        stage.wait("a pod to be gone", lambda: any(are_gone(stage, pod) for pod in before), GRACE_SECONDS)
    assert_all_finished(asking, since)


def test_what_is_under_way_when_the_model_is_deleted_finishes(
    stage: Stage, replicas: str, long_tokens: int
) -> None:
    with clients(stage, replicas, KINDS, long_tokens) as asking:
        busy_pod(stage)
        deleted = time.time()
        stage.remove(replicas, 400)
    assert asking.under_way(deleted)
    assert not asking.failed(before=deleted)
