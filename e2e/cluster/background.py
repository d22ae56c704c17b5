"""A control plane that outlives the command that started it.

`up` leaves a keeper process behind which holds the control plane as a test would, so that there is one way
to start and stop. The keeper's lock on a file in the directory is the proof that it lives: a number in a
file alone might name a stranger.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.processes import tail
from e2e.cluster.waiting import Timeout, wait_until

ROOT = Path(__file__).parents[2]
START_SECONDS = 300.0
STOP_SECONDS = 60.0


class NotPossible(Exception):
    """What was asked cannot be done; the message says why and what to do."""


def up(directory: Path, module: str = "e2e.cluster") -> Path:
    """Starts a keeper in the background; returns the kubeconfig when everything is ready.

    module: whose `serve --dir DIR` is the keeper, for a control plane with more in it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    directory = directory.resolve()
    if is_kept(directory):
        raise NotPossible(
            f"A control plane runs in {directory} already. Stop it with\n  {_hint('down', directory)}"
        )
    _state_file(directory).unlink(missing_ok=True)
    log = directory / "keeper.log"
    command = [sys.executable, "-m", module, "serve", "--dir", str(directory)]
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_until(
            "the control plane to be ready",
            lambda: _state_file(directory).exists() or keeper.poll() is not None,
            START_SECONDS,
        )
    except BaseException:
        keeper.terminate()
        raise
    if keeper.poll() is not None:
        raise NotPossible(f"The control plane did not start.\n{tail(log)}")
    return Path(_state(directory)["kubeconfig"])


def serve(directory: Path, make: Callable[[Path], ControlPlane] = ControlPlane) -> None:
    """Keeps a control plane until SIGTERM or Ctrl-C."""
    directory.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with _lock_file(directory).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            with make(directory) as cluster:
                _write_state(directory, cluster)
                signal.pause()
        except KeyboardInterrupt:
            print("stopped")
        finally:
            _state_file(directory).unlink(missing_ok=True)


def down(directory: Path) -> None:
    """Stops the keeper, and with it the control plane."""
    state = _state(directory)
    os.kill(state["keeper"], signal.SIGTERM)
    try:
        wait_until("the control plane to stop", lambda: not is_kept(directory), STOP_SECONDS)
    except Timeout as late:
        raise NotPossible(f"The keeper, process {state['keeper']}, still runs: {late}.") from late


def status(directory: Path) -> Iterator[str]:
    """Lines for a person: the address, the programs and their resident memory."""
    state = _state(directory)
    yield f"{state['server']}  KUBECONFIG={state['kubeconfig']}"
    total = 0.0
    for name, process in state["programs"].items():
        resident = resident_mib(process)
        total += resident or 0.0
        yield f"{name:<24} " + (
            "not running" if resident is None else f"process {process:<8} {resident:5.0f} MiB"
        )
    yield f"{'together':<24} {'':<16} {total:5.0f} MiB"


def resident_mib(process: int) -> float | None:
    """The resident memory of a process; None when there is no such process."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def _state(directory: Path) -> dict[str, Any]:
    if not is_kept(directory) or not _state_file(directory).exists():
        raise NotPossible(f"No control plane runs in {directory}. Start one with\n  {_hint('up', directory)}")
    state: dict[str, Any] = json.loads(_state_file(directory).read_text())
    return state


def _write_state(directory: Path, cluster: ControlPlane) -> None:
    processes = {name: p.process.pid for name, p in cluster.programs.items() if p.process is not None}
    state = {
        "keeper": os.getpid(),
        "server": cluster.server,
        "kubeconfig": str(cluster.kubeconfig),
        "programs": processes,
    }
    unfinished = directory / "state.unfinished"
    unfinished.write_text(json.dumps(state, indent=2))
    unfinished.rename(_state_file(directory))  # `up` waits for the name, so the content must be whole by then


def is_kept(directory: Path) -> bool:
    """Whether a keeper lives in the directory."""
    if not _lock_file(directory).exists():
        return False
    with _lock_file(directory).open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _lock_file(directory: Path) -> Path:
    return directory / "lock"


def _state_file(directory: Path) -> Path:
    return directory / "state.json"


def _hint(command: str, directory: Path) -> str:
    return f"python -m e2e.cluster {command} --dir {directory}"
