"""The command: opens the report, lets the child judge, and writes what came of it, whatever happens."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from bowsprit_runtime import launch, reasons
from bowsprit_runtime.plugins import plugins_of
from bowsprit_runtime.preflight import engine, redact, supervise
from bowsprit_runtime.preflight.request import Request, request_of
from bowsprit_runtime.report import EXIT_NO_VERDICT, LIMIT, TERMINATION_LOG, Report, encoded

_CHILD = (
    "import sys; sys.path[:] = [folder for folder in sys.path if folder]\n"
    "from bowsprit_runtime.preflight import judge; judge.main()"
)
"""Without the working directory on the path: a folder `vllm` there is not the engine."""

UNFINISHED = b"preflight was ended before it had come to a verdict; the pod's log says more"
"""Until there is a report. From an empty file the kubelet would tell the end of the log in its place, with
whatever a plugin has printed there."""


def main(arguments: Sequence[str]) -> int:
    """Judges what BOWSPRIT_PLUGINS and BOWSPRIT_PREFLIGHT say; the report goes to the named file."""
    path = arguments[0] if arguments else TERMINATION_LOG
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, UNFINISHED)
        request = request_of(os.environ)
        report = judged(request, os.environ)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, told(report), 0)
    finally:
        os.close(descriptor)
    _say(report)
    return report.exit_code


def told(report: Report) -> bytes:
    """What stands in the termination log: a report, or of a judging without a verdict why it has none."""
    if report.exit_code == EXIT_NO_VERDICT:
        return "\n".join(fault.message for fault in report.faults).encode()[:LIMIT]
    return encoded(report.as_json())


def judged(request: Request, environ: Mapping[str, str]) -> Report:
    """What the child found, without secrets."""
    limits = supervise.Limits(request.seconds, request.memory or supervise.memory_limit())
    command = [sys.executable, "-c", _CHILD]
    report = supervise.judge(command, child_environment(environ), limits).report
    return redact.without_secrets(report, environ, request.arguments)


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """As serving pods have it, but for the platform that stands in for the GPU, and no GPU in sight."""
    serving = launch.environment(plugins_of(environ), environ)
    names = serving.get("VLLM_PLUGINS")
    return {
        **serving,
        "PYTHONPATH": os.pathsep.join([serving["PYTHONPATH"], str(engine.STAND_IN)]),
        **({} if names is None else {"VLLM_PLUGINS": f"{names},{engine.STAND_IN_NAME}"}),
        "CUDA_VISIBLE_DEVICES": "-1",
        "HIP_VISIBLE_DEVICES": "-1",
        "VLLM_NO_USAGE_STATS": "1",
    }


def _say(report: Report) -> None:
    """For who reads the pod's log."""
    print(f"bowsprit: preflight: {report.verdict}", flush=True)
    for fault in report.faults:
        print(f"bowsprit: {fault.reason} ({fault.blame}): {fault.message}", flush=True)
        print(f"bowsprit:   {reasons.REASONS[fault.reason].cure}", flush=True)
    for warning in report.warnings:
        print(f"bowsprit: warning: {warning}", flush=True)
