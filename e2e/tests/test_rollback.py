"""A new revision of real vLLM that loads and answers nonsense: nobody is answered so; the old one serves."""

from __future__ import annotations

import pytest

from e2e.tests.stage import PROMPT, Stage

pytestmark = pytest.mark.e2e

START_SECONDS = 600


def test_an_engine_that_does_not_pass_its_self_check_never_serves(stage: Stage) -> None:
    stage.model("checked", preflight="Skip")
    stage.wait_ready("checked", START_SECONDS)
    said = stage.complete("checked", PROMPT)
    old = stage.get("mdep", "checked")["status"]["revisions"]["serving"]

    stage.patch("checked", {"rollout": {"verify": {"prompt": PROMPT, "contains": "nothing that it says"}}})
    stage.wait("the self-check to fail", lambda: _failed(stage), START_SECONDS)
    told = stage.condition("checked", "Stalled")["message"]
    assert "/v1/completions answered without 'nothing that it says': '" in told
    assert f"Revision {old}, which served before, is restored." in told
    stage.wait("the old one to serve", lambda: _ready_replicas(stage) == 1, START_SECONDS)
    assert stage.complete("checked", PROMPT) == said

    check = {"prompt": PROMPT, "contains": said.strip(), "maxTokens": 8}
    stage.patch("checked", {"rollout": {"verify": check}})
    stage.wait_ready("checked", START_SECONDS)
    revisions = stage.get("mdep", "checked")["status"]["revisions"]
    assert revisions["serving"] == revisions["target"] != old
    assert stage.complete("checked", PROMPT) == said
    stage.remove("checked")


def _failed(stage: Stage) -> bool:
    return bool(stage.condition("checked", "Stalled").get("reason") == "VerifyFailed")


def _ready_replicas(stage: Stage) -> int:
    return int(stage.get("mdep", "checked")["status"].get("readyReplicas", 0))
