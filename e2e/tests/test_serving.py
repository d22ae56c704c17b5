"""Real vLLM in real containers: tokens through the Service, from one pod and from a group."""

from __future__ import annotations

import pytest

from e2e.tests.stage import PROMPT, Stage

pytestmark = pytest.mark.e2e


def test_model_from_a_claim_serves_tokens_through_its_service(said_by_one_pod: str) -> None:
    assert said_by_one_pod


def test_group_over_two_nodes_says_the_same_as_one_pod(stage: Stage, said_by_one_pod: str) -> None:
    if len(stage.target.nodes()) < 2:
        pytest.skip("needs two nodes")
    stage.model("two-pods", parallelism={"pipeline": 2})
    stage.wait_ready("two-pods", 600)
    assert len({pod["spec"]["nodeName"] for pod in stage.engines("two-pods")}) == 2
    assert stage.complete("two-pods", PROMPT) == said_by_one_pod
    stage.remove("two-pods")
