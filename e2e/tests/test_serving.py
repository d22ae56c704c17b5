"""Real vLLM in real containers: tokens through the Service, from one pod and from a group."""

from __future__ import annotations

import pytest

from e2e.tests.stage import Stage

pytestmark = pytest.mark.e2e

PROMPT = " ba be bi"


@pytest.fixture(scope="module")
def alone(stage: Stage) -> str:
    """What one pod says, whose GPU is free again afterwards."""
    stage.model("one-pod")
    stage.wait_ready("one-pod", 600)
    assert stage.ask(f"{stage.url('one-pod')}/v1/models")[1]["data"][0]["id"] == "one-pod"
    said = stage.complete("one-pod", PROMPT)
    stage.kubectl("delete", "mdep", "one-pod")
    stage.wait("the pod to be gone", lambda: not stage.engines("one-pod"), 180)
    return said


def test_model_from_a_claim_serves_tokens_through_its_service(alone: str) -> None:
    assert alone


def test_group_over_two_nodes_says_the_same_as_one_pod(stage: Stage, alone: str) -> None:
    if len(stage.target.nodes()) < 2:
        pytest.skip("needs two nodes")
    stage.model("two-pods", parallelism={"pipeline": 2})
    stage.wait_ready("two-pods", 600)
    assert len({pod["spec"]["nodeName"] for pod in stage.engines("two-pods")}) == 2
    assert stage.complete("two-pods", PROMPT) == alone
