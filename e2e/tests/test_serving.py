"""Real vLLM in real containers: tokens through the Service, from one pod and from a group."""

from __future__ import annotations

import pytest

from e2e.tests.stage import Stage

pytestmark = pytest.mark.e2e

PROMPT = " ba be bi"


def test_model_from_a_claim_serves_tokens_through_its_service(stage: Stage) -> None:
    stage.model("one-pod")
    stage.wait_ready("one-pod", 600)
    assert stage.complete("one-pod", PROMPT)
    assert stage.ask("one-pod", "/v1/models")[1]["data"][0]["id"] == "one-pod"


def test_group_over_two_nodes_says_the_same_as_one_pod(stage: Stage) -> None:
    if len(stage.target.nodes()) < 2:
        pytest.skip("needs two nodes")
    stage.model("two-pods", parallelism={"pipeline": 2, "gpusPerPod": 1})
    stage.wait_ready("two-pods", 600)
    engines = stage.engines("two-pods")
    assert len({pod["spec"]["nodeName"] for pod in engines}) == 2
    assert stage.complete("two-pods", PROMPT)
