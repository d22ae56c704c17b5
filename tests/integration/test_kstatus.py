"""GitOps tools wait by kstatus: its own code on every moment of a model's life, and on a real API server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.api.v1alpha1 import API_VERSION, KIND
from bowsprit.status.compute import compute
from bowsprit.status.observed import Observed
from tests.integration.arena import Arena
from tests.integration.kstatus import CURRENT, FAILED, IN_PROGRESS, kstatus
from tests.unit.status.examples import LIFE
from tests.unit.status.strategies import healthy, observations

pytestmark = pytest.mark.integration

DONE = {"ready", "scaled to nothing", "plugins without preflight"}
HOPELESS = {
    "a field of the spec is wrong",
    "the config lacks a field",
    "the layout is refused",
    "the spec is broken while it serves",
    "the API server refuses the workload",
    "the first revision ends again and again",
    "a new revision does not pass its self-check",
}
"""Only a change of the spec helps."""


def written(observed: Observed) -> dict[str, Any]:
    """The object as the operator leaves it."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "llama", "namespace": "chat", "generation": observed.generation},
        "status": compute(observed, None, "2026-11-30T12:00:00Z"),
    }


def condition(model: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(each for each in model["status"]["conditions"] if each["type"] == kind)


def test_every_moment_of_a_models_life_is_judged_as_it_is() -> None:
    judged = kstatus(written(moment) for moment in LIFE.values())
    expected = {
        name: CURRENT if name in DONE else FAILED if name in HOPELESS else IN_PROGRESS for name in LIFE
    }
    assert dict(zip(LIFE, (status for status, _ in judged), strict=True)) == expected


def test_a_failure_is_told_in_our_words() -> None:
    (told,) = kstatus([written(LIFE["the layout is refused"])])
    assert told == (FAILED, "parallelism.tensor 3 does not divide 64 heads. Use 1, 2, 4 or 8.")


@settings(max_examples=25)
@given(st.lists(observations | healthy, min_size=1, max_size=20))
def test_whatever_is_observed_done_is_ready_and_failed_is_stalled(many: list[Observed]) -> None:
    models = [written(each) for each in many]
    for model, (status, _) in zip(models, kstatus(models), strict=True):
        stands = condition(model, "Reconciling")["status"] == "False"
        assert (status == FAILED) == (condition(model, "Stalled")["status"] == "True")
        assert (status == CURRENT) == (condition(model, "Ready")["status"] == "True" and stands)


def test_a_model_that_no_operator_has_seen_is_not_done(arena: Arena) -> None:
    arena.model("chat")
    seen = arena.get("chat")
    assert seen["status"] == {"observedGeneration": -1}
    (told,) = kstatus([seen])
    assert told == (IN_PROGRESS, "ModelDeployment generation is 1, but latest observed generation is -1")


def test_a_changed_spec_is_in_progress_from_the_first_moment(arena: Arena) -> None:
    arena.nodes(1)
    operator = arena.operator()
    arena.model("chat")
    arena.wait_ready("chat")
    arena.wait("it to be done", lambda: kstatus([arena.get("chat")])[0][0] == CURRENT)
    operator.stop()
    arena.patch("chat", {"priority": 7})
    assert kstatus([arena.get("chat")])[0][0] == IN_PROGRESS
    operator.start()
    arena.wait("it to be done again", lambda: kstatus([arena.get("chat")])[0][0] == CURRENT)
