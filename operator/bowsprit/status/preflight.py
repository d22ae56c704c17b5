"""What the proof of a spec means for its model, in words.

A verdict of Broken waits for a change by the user, and what runs goes on. Unjudged blocks nothing: the start
of vLLM shows what preflight could not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bowsprit.api.cures import CURES
from bowsprit.api.defaults import PREFLIGHT_REQUESTS
from bowsprit.api.reasons import Reason
from bowsprit.facts.report import Fault, Report, Verdict
from bowsprit.status.attempt import Attempt, Stage
from bowsprit.status.course import Course, Finding
from bowsprit.status.text import count, listed

_AT_FAULT: Mapping[str, str] = {
    "plugin": "The plugin is at fault",
    "image": "The engine image is at fault",
    "model": "The model is at fault",
    "spec": "The spec is at fault",
    "network": "The network is at fault",
}
_HELD_CURES: Mapping[str, str] = {
    Reason.IMAGE_PULL_FAILED: (
        "The kubelet tries again by itself; correct the image's name when there is no such image, or add its "
        "registry's credentials in spec.template.spec.imagePullSecrets."
    ),
    Reason.PREFLIGHT_UNSCHEDULABLE: (
        f"It asks for {PREFLIGHT_REQUESTS['cpu']} CPU, {PREFLIGHT_REQUESTS['memory']} memory and no GPU, "
        "and runs on any node whose taints spec.accelerator.tolerations tolerates; it starts by itself when "
        "there is room."
    ),
}
_TRIED_AGAIN = (Reason.PREFLIGHT_CRASHED, Reason.PREFLIGHT_TIMED_OUT)
"""Their cure is another try."""
_HELD_CURE = "It goes on by itself when that is put right."


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of the proof that the present spec asks for."""

    report: Report | None = None
    attempt: Attempt | None = None
    """The newest pod, while there is no report."""
    given_up: str = ""
    """Name of the Job when it tries no more."""
    kept_away: tuple[str, ...] = ()
    """Taints of nodes that keep its pod away, while no node takes it."""


def finding_of(proof: Proof) -> Finding | None:
    """What keeps the model from being planned; None when the proof lets it pass."""
    return unproven(proof) if proof.report is None else broken(proof.report)


def unproven(proof: Proof) -> Finding:
    """How far preflight is, or what keeps it from a verdict."""
    attempt = proof.attempt
    if attempt is None:
        message = (
            "Preflight is starting: plugins, architecture and arguments are proven before a GPU is taken."
        )
        return Finding(Reason.PREFLIGHT_RUNNING, message, Course.WORKING)
    if attempt.stage is Stage.UNDER_WAY or attempt.stage is Stage.REPORTED:
        return Finding(Reason.PREFLIGHT_RUNNING, f"Preflight runs in pod {attempt.name}.", Course.WORKING)
    return _hindered(attempt, proof)


def broken(report: Report) -> Finding | None:
    """What must be changed; None when the report lets the model pass."""
    if report.verdict is not Verdict.BROKEN:
        return None
    fault = report.faults[0]
    whose = _AT_FAULT.get(fault.blame, "Preflight failed")
    others = listed([each.reason for each in report.faults[1:]])
    more = f" Beside that: {others}." if others else ""
    return Finding(fault.reason, f"{whose}: {_told(fault)}{more}", Course.STALLED)


def verified_message(report: Report) -> str:
    """What was proven."""
    engine = f"vLLM {report.engine['vllm']}" if "vllm" in report.engine else "the engine image"
    architecture = report.facts.get("architecture")
    built = f"{architecture} is built, " if isinstance(architecture, str) else ""
    plugins = listed([f"{each.name} {each.version}" for each in report.plugins])
    proven = f"Proven with {engine}: {built}the arguments are accepted"
    return f"{proven}; {count(len(report.plugins), 'plugin')}: {plugins}." if plugins else f"{proven}."


def warnings_message(report: Report) -> str:
    return f"{verified_message(report)} Warnings: {' | '.join(report.warnings)}"


def unjudged_message(report: Report) -> str:
    return f"Not judged to the end: {_told(report.faults[0])} The start of vLLM will show it."


def _hindered(attempt: Attempt, proof: Proof) -> Finding:
    message, given_up = f"Preflight: {_sentence(attempt.message)}", proof.given_up
    if attempt.stage is Stage.HELD:
        cure = _HELD_CURES.get(attempt.reason, _HELD_CURE)
        taints = f" Taints that it does not tolerate: {listed(proof.kept_away)}." if proof.kept_away else ""
        return Finding(attempt.reason, f"{message} {cure}{taints}", Course.BLOCKED)
    if attempt.stage is Stage.OFFLINE:
        return Finding(attempt.reason, f"{message} {_cure(attempt.reason)}", Course.BLOCKED)
    if not given_up:
        return Finding(attempt.reason, f"{message} It is tried again.", Course.WORKING)
    again = f"To try again without a change of the spec: kubectl delete job {given_up}."
    cure = _cure(attempt.reason)
    if attempt.reason in _TRIED_AGAIN:
        cure = f"It was tried as often as a Job tries; kubectl logs {attempt.name} says more."
    return Finding(attempt.reason, f"{message} {cure} {again}", Course.STALLED)


def _told(fault: Fault) -> str:
    return f"{_sentence(fault.message)} {_cure(fault.reason)}".strip()


def _sentence(words: str) -> str:
    ended = words.rstrip(". ")
    return ended if ended.endswith(("?", "!")) else f"{ended}."


def _cure(reason: str) -> str:
    """Empty for a reason that a newer runtime gives."""
    return next((cure for known, cure in CURES.items() if known == reason), "")
