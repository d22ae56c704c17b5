"""How the engine of a pod is made to end, as a crash or the kernel would make it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from e2e.cluster.real import cgroups
from e2e.tests.stage import Stage
from e2e.tests.targets import OWN

ENGINE = "vllm"
"""In the command line of the engine's first process."""


def kill(stage: Stage, pod: str) -> None:
    """SIGKILL to all of the engine; only the node can send that to a container's first process."""
    if OWN:
        pytest.skip("kills processes of this machine's nodes only")
    uid = stage.get("pod", pod)["metadata"]["uid"]
    engine = [number for number in cgroups.processes_of_pod(uid) if ENGINE in _command(number)]
    assert engine, f"no engine runs in {pod}"
    for number in engine:
        os.kill(number, signal.SIGKILL)


def end_with_code_0(stage: Stage, pod: str) -> None:
    """SIGTERM to the first process, which vLLM takes as a wish to end well."""
    send = f"import os, signal; os.kill(1, signal.{signal.SIGTERM.name})"
    stage.execute(pod, "python3", "-c", send)


def kill_workers(stage: Stage, pod: str) -> None:
    """SIGKILL to all but the first process: what the kernel does when memory runs out."""
    stage.execute(pod, "python3", "-c", "import os, signal; os.kill(-1, signal.SIGKILL)")


def _command(number: int) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended
        return ""
