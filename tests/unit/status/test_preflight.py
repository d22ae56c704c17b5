"""What the status says of each way in which preflight can go, read from the pod that ran it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.facts.report import Verdict, parse_report
from bowsprit.plan.result import ModelPlan
from bowsprit.status.attempt import Stage, attempt_of
from bowsprit.status.compute import compute
from bowsprit.status.events import events_between
from bowsprit.status.observed import Observed
from bowsprit.status.preflight import Proof
from tests.unit.status.examples import CREATED, READY, spec
from tests.unit.status.preflight_pods import DIGEST, ENGINE, PODS, ended, pod, report

GOLDEN = Path(__file__).with_name("golden") / "preflight.yaml"
NOW = "2026-11-30T12:00:00Z"
JOB = "llama-preflight-0123456789"

WAITING = replace(CREATED, spec=spec(plugins=[{"image": "registry.example.com/my-opt:1.0"}]), target=None)
SERVING = replace(READY, spec=WAITING.spec, target=None, plan=None, serving="new")
"""The spec has been changed while replicas of the old one serve."""


def proof(moment: str, *, given_up: bool = False) -> Proof:
    """As the operator sees it when the pod is as in PODS."""
    attempt = attempt_of(PODS[moment])
    assert attempt is not None
    if attempt.stage is Stage.REPORTED:
        return Proof(report=parse_report(attempt.report))
    return Proof(attempt=attempt, given_up=JOB if given_up else "")


def conditions(observed: Observed) -> dict[str, str]:
    found = compute(observed, None, NOW)["conditions"]
    return {each["type"]: f"{each['status']} {each['reason']}: {each['message']}" for each in found}


ENDED = (
    "killed for its memory",
    "it hangs",
    "a crash",
    "a report that is none",
    "a plugin image without its folder",
)
MOMENTS: dict[str, Observed] = {
    "no pod yet": replace(WAITING, proof=Proof()),
    **{moment: replace(WAITING, proof=proof(moment)) for moment in PODS},
    **{f"{moment}, for good": replace(WAITING, proof=proof(moment, given_up=True)) for moment in ENDED},
    "an old revision serves while it runs": replace(SERVING, proof=proof("running")),
    "an old revision serves and the new spec is broken": replace(SERVING, proof=proof("a broken plugin")),
    "what serves is planned on while the new spec is broken": replace(
        SERVING, proof=proof("a broken plugin"), plan=READY.plan, stand_in="new"
    ),
    "suspended": replace(WAITING, spec=spec(suspend=True), proof=Proof()),
}  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_status_says(moment: str) -> None:
    told = conditions(MOMENTS[moment])
    said = {name: told[name] for name in ("PluginVerified", "Ready", "Stalled", "Available")}
    if os.environ.get("BOWSPRIT_WRITE_GOLDEN"):
        golden = yaml.safe_load(GOLDEN.read_text()) if GOLDEN.exists() else {}
        known = {name: golden[name] for name in MOMENTS if name in golden}
        GOLDEN.write_text(yaml.safe_dump({**known, moment: said}, sort_keys=False, width=110))
    assert said == yaml.safe_load(GOLDEN.read_text())[moment]


def test_the_golden_file_holds_no_moment_that_is_gone() -> None:
    assert set(yaml.safe_load(GOLDEN.read_text())) == set(MOMENTS)


def test_a_pull_that_fails_is_told_alike_in_the_kubelets_two_phases() -> None:
    assert proof("a plugin image does not exist") == proof("the same, between two tries")


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if MOMENTS[moment].proof is not None])
def test_nothing_is_stalled_and_reconciling_at_once(moment: str) -> None:
    told = conditions(MOMENTS[moment])
    assert not (told["Stalled"].startswith("True") and told["Reconciling"].startswith("True"))
    stalled = told["Stalled"].startswith("True")
    assert stalled is told["PluginVerified"].startswith("False")


def test_a_broken_plugin_leaves_what_serves_alone() -> None:
    told = compute(MOMENTS["an old revision serves and the new spec is broken"], None, NOW)
    assert (told["phase"], told["readyReplicas"]) == ("Failed", 2)
    assert told["url"]


def test_a_verdict_is_an_event_and_every_broken_one_a_warning() -> None:
    before = compute(MOMENTS["running"], None, NOW)
    fine = events_between(before, compute(MOMENTS["fine"], before, NOW))
    assert [(note.type, note.reason) for note in fine] == [("Normal", "Verified")]
    broken = events_between(before, compute(MOMENTS["a broken plugin"], before, NOW))
    assert [(note.type, note.reason) for note in broken] == [("Warning", "PluginImportFailed")]
    held = events_between(before, compute(MOMENTS["a plugin image does not exist"], before, NOW))
    assert [(note.type, note.reason) for note in held] == [("Warning", "ImagePullFailed")]


def test_images_are_told_with_what_the_kubelet_ran() -> None:
    attempt = attempt_of(PODS["fine"])
    assert attempt is not None
    assert dict(attempt.images)["engine"] == (ENGINE, f"vllm/vllm-openai@{DIGEST}")
    assert dict(attempt.images).keys() == {"runtime", "plugin-0", "install-plugins", "engine"}


def test_a_report_counts_only_when_its_container_has_ended() -> None:
    assert proof("running").report is None
    early = attempt_of(pod("Running", ended(0, report())))
    assert early is not None
    assert early.stage is Stage.UNDER_WAY


def test_a_pod_of_somebody_else_is_no_attempt() -> None:
    other = pod("Running")
    other["metadata"]["labels"] = {"app": "x"}
    assert attempt_of(other) is None
    del other["metadata"]["labels"]
    assert attempt_of(other) is None


@given(st.text(), st.integers(1, 255))
def test_whatever_a_container_left_behind_is_told_shortly(text: str, code: int) -> None:
    attempt = attempt_of(pod("Failed", ended(code, text * 50)))
    assert attempt is not None
    assert attempt.stage is Stage.FAILED
    assert len(attempt.message) < 600


def test_verdicts_are_those_of_the_runtime() -> None:
    from bowsprit_runtime.report import Fault, Report

    made = [
        Report(),
        Report(warnings=["w"]),
        Report(faults=[Fault("NeedsGPU", "plugin", "m")]),
        Report(faults=[Fault("PluginRaised", "plugin", "m")]),
    ]
    assert [each.verdict for each in made] == [str(verdict) for verdict in Verdict]


def test_what_the_runtime_encodes_is_read_here() -> None:
    from bowsprit_runtime.report import Fault, Report, encoded

    long = Report(faults=[Fault("PluginRaised", "plugin", "x" * 9000)], warnings=["y" * 9000] * 40)
    found = parse_report(encoded(long.as_json()).decode())
    assert found is not None
    assert found.faults[0].reason == "PluginRaised"


def test_promises_of_the_revision_that_stands_in_are_written_down() -> None:
    told = compute(MOMENTS["what serves is planned on while the new spec is broken"], None, NOW)
    assert {entry["revision"] for entry in told["plan"]["replicas"]} == {"new"}
    assert "target" not in told["revisions"]


def test_a_model_without_replicas_is_not_ready_for_a_spec_that_is_broken() -> None:
    nothing = replace(
        SERVING,
        spec=spec(replicas=0),
        units=(),
        proof=proof("a broken plugin"),
        plan=ModelPlan(SERVING.key, 0),
        stand_in="new",
    )
    assert conditions(nothing)["Ready"].startswith("False PluginImportFailed")
