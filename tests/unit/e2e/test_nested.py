"""Programs in namespaces of their own end when they are told to, whatever was done to them before."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from e2e.cluster.processes import ProcessGroup
from e2e.cluster.real.namespaces import Nested
from e2e.cluster.waiting import wait_until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("nsenter") is None, reason="needs nsenter, and root for it"
)


def state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def test_one_that_stood_still_and_goes_on_ends_when_it_is_told_to(tmp_path: Path) -> None:
    inside = ["nsenter", "--target", str(os.getpid()), "--uts", "--pid", "--", "sleep", "600"]
    program = Nested("sleeper", inside, tmp_path / "log", lambda: True)
    group = ProcessGroup()
    try:
        program.launch(group)
        assert program.process is not None
        starter = program.process.pid
        wait_until("its start", lambda: program.nested != starter, 10)
        os.kill(program.nested, signal.SIGSTOP)
        wait_until("the starter to stop with it", lambda: state(starter) == "T", 10)
        os.kill(program.nested, signal.SIGCONT)
        program.terminate()
        assert program.process.wait(10) != 0
    finally:
        group.kill()
