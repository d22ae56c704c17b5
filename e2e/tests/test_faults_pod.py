"""What a replica of one pod goes through: it starts again in place, and the condition says why it had to."""

from __future__ import annotations

import pytest

from e2e.tests import ranks
from e2e.tests.record import recording
from e2e.tests.stage import PROMPT, Stage

pytestmark = pytest.mark.e2e

NAME = "mortal"


def test_an_engine_that_is_killed_starts_again_in_its_pod(stage: Stage) -> None:
    stage.model(NAME, preflight="Skip")
    stage.wait_ready(NAME, 600)
    said = stage.complete(NAME, PROMPT)
    ((uid, restarts),) = stage.lives(NAME).items()
    (pod,) = stage.engines(NAME)
    name = pod["metadata"]["name"]
    with recording(stage) as record:
        ranks.kill_workers(stage, name)
        stage.wait("the engine to end", lambda: stage.lives(NAME) == {uid: restarts + 1}, 120)
        stage.wait_ready(NAME, 600)
        record.catch_up(NAME)
    assert {"True", "False"} == {each.get("status") for each in record.conditions(NAME)}
    assert f"pod {name}: container engine ended with exit code" in record.messages(NAME)
    assert "kubectl logs --previous" in record.messages(NAME)
    assert stage.complete(NAME, PROMPT) == said
    assert stage.lives(NAME) == {uid: restarts + 1}
    stage.remove(NAME)
