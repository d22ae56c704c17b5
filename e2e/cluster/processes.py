"""The child processes of a control plane, none of which may outlive it.

All of them join one process group whose leader, the leash, does nothing but read a pipe that only this
Python process holds open. However this process ends, SIGKILL included, the pipe closes and the leash kills
the group. (Linux's parent-death signal is no substitute: it fires when the *thread* that started the child
ends.)
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.waiting import POLL_SECONDS

LOG_TAIL_LINES = 25
STOP_SECONDS = 10.0


class StartFailed(Exception):
    """A program ended or stayed unready; the message holds the end of its log and the log's path."""


class ProcessGroup:
    """Processes that die together, at the latest with the Python process that made the group."""

    def __init__(self) -> None:
        self._leash = subprocess.Popen(
            ["sh", "-c", "read _; kill -KILL 0"], stdin=subprocess.PIPE, process_group=0
        )

    def start(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str], cwd: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts `command` in the group, with its output appended to `log`."""
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                cwd=cwd,
                process_group=self._leash.pid,
            )

    def kill(self) -> None:
        """Kills whatever is left of the group."""
        assert self._leash.stdin is not None
        self._leash.stdin.close()
        self._leash.wait()


@dataclass
class Program:
    """One program of the control plane: how it starts, when it is ready, and its process, if any."""

    name: str
    command: Sequence[str]
    log: Path
    is_ready: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def launch(self, group: ProcessGroup) -> None:
        """Starts the program without waiting for it."""
        if not self.running:
            self.process = group.start(self.command, self.log, self.environment)

    def wait_ready(self, seconds: float) -> None:
        """Returns when the program is ready; raises StartFailed when it ends first or takes too long."""
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            if self.process is None or self.process.poll() is not None:
                code = "not started" if self.process is None else f"exit code {self.process.returncode}"
                raise StartFailed(f"{self.name} ended while starting ({code}).\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise StartFailed(f"{self.name} was not ready after {seconds:.0f} s.\n{tail(self.log)}")
            time.sleep(POLL_SECONDS)

    def terminate(self) -> None:
        """Asks the program to end, without waiting."""
        if self.running:
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the program at once, as a crash would."""
        if self.running:
            self._signal(signal.SIGKILL)
            self.wait_ended()

    def wait_ended(self) -> None:
        """Waits for the program's end; one that ignores SIGTERM is killed."""
        if self.process is None:
            return
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)


def tail(log: Path) -> str:
    """The end of a log, and where the rest is: what a person needs when a start fails."""
    lines = log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
    return "\n".join([f"The last {len(lines)} lines of {log}:", *(f"  {line}" for line in lines)])
