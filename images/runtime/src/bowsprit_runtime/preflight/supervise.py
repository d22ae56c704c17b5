"""Runs the judging child within its time and its memory, and says what ended it.

Memory is watched from outside: a container whose limit is reached is killed whole, report and all, so the
child has to be stopped before. Counted is what cannot be given back: anonymous and shared memory, not mapped
files.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight.causes import short
from bowsprit_runtime.preflight.events import Judged
from bowsprit_runtime.report import Fault

DESCRIPTOR_ENV = "BOWSPRIT_PREFLIGHT_EVENTS"
GIB = 1 << 30

_POLL_SECONDS = 0.05
"""A process can fill some 100 MiB in this time; the reserve below is larger."""
_RESERVE = 0.1
"""Of the memory limit: for this process, and for what is taken between two looks."""
_STACK_SECONDS = 1.0
"""How long a stopped child may take to write its stack."""
_TAIL_LINES = 40


@dataclass(frozen=True)
class Limits:
    seconds: float
    memory: int | None
    """Bytes; None when nothing limits the container."""


@dataclass
class _Child:
    """The process, its two pipes, and what came out of them."""

    process: subprocess.Popen[bytes]
    events: int
    output: int
    judged: Judged = field(default_factory=Judged)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    pending: bytes = b""

    def read(self, descriptor: int) -> bool:
        """Takes what is there; False at the end of the pipe."""
        try:
            piece = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        if descriptor == self.output:
            sys.stderr.buffer.write(piece)
            sys.stderr.buffer.flush()
            self.tail.extend(piece.decode("utf-8", "replace").splitlines())
        else:
            *lines, self.pending = (self.pending + piece).split(b"\n")
            self.judged.take(lines)
        return bool(piece)

    def drain(self, seconds: float) -> None:
        """Reads on for so long, or until both pipes end."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for descriptor in (self.events, self.output):
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map() and time.monotonic() < deadline:
                for key, _ in selector.select(timeout=max(0.0, deadline - time.monotonic())):
                    if not self.read(key.fd):
                        selector.unregister(key.fd)


def judge(command: Sequence[str], environ: Mapping[str, str], limits: Limits) -> Judged:
    """Runs `command`, which tells its events to the descriptor that DESCRIPTOR_ENV names."""
    with _started(command, environ) as child:
        ended = _watched(child, limits)
        child.judged.report.faults.extend([ended] if ended else [])
        return child.judged


@contextlib.contextmanager
def _started(command: Sequence[str], environ: Mapping[str, str]) -> Iterator[_Child]:
    events, tell = os.pipe()
    output, say = os.pipe()
    for descriptor in (events, output):
        os.set_blocking(descriptor, False)
    process = subprocess.Popen(
        command,
        env={**environ, DESCRIPTOR_ENV: str(tell)},
        pass_fds=(tell,),
        stdin=subprocess.DEVNULL,
        stdout=say,
        stderr=say,
        start_new_session=True,
    )
    os.close(tell)
    os.close(say)
    try:
        yield _Child(process, events, output)
    finally:
        _kill(process)
        os.close(events)
        os.close(output)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The child and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _watched(child: _Child, limits: Limits) -> Fault | None:
    """Why it was stopped or died; None when it came to its end."""
    began = time.monotonic()
    allowed = limits.memory and int(limits.memory * (1 - _RESERVE))
    while child.process.poll() is None:
        child.drain(_POLL_SECONDS)
        if time.monotonic() - began > limits.seconds:
            return _too_long(child, limits, time.monotonic() - began)
        used = unreclaimable(child.process.pid) if allowed else 0
        if allowed and used > allowed:
            return _too_much(child, limits, used)
        if child.judged.done:
            return None
    child.drain(_STACK_SECONDS)
    return None if child.judged.done else _died(child)


def _too_long(child: _Child, limits: Limits, passed: float) -> Fault:
    in_step = time.monotonic() - child.judged.step_began
    doing, plugin, where = child.judged.step, child.judged.plugin, _stack(child, _STACK_SECONDS)
    message = f"{doing} took {in_step:.0f} s without an end; preflight has {limits.seconds:.0f} s{where}"
    if plugin and in_step > passed / 2:
        return Fault(reasons.PLUGIN_TIMED_OUT, "plugin", message)
    return Fault(reasons.PREFLIGHT_TIMED_OUT, "image", message)


def _too_much(child: _Child, limits: Limits, used: int) -> Fault:
    plugin = child.judged.plugin
    where = _stack(child, _POLL_SECONDS * 2)
    assert limits.memory
    message = (
        f"{child.judged.step} took {used / GIB:.1f} GiB of the {limits.memory / GIB:.1f} GiB that the "
        f"container may use{where}"
    )
    if plugin:
        return Fault(reasons.PLUGIN_OUT_OF_MEMORY, "plugin", message)
    return Fault(reasons.PREFLIGHT_OUT_OF_MEMORY, "spec", message)


def _died(child: _Child) -> Fault:
    code = child.process.returncode
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    message = f"the process was {how} while {child.judged.step}{_last_words(child)}"
    if child.judged.plugin:
        return Fault(reasons.PLUGIN_EXITED, "plugin", message)
    return Fault(reasons.PREFLIGHT_CRASHED, "image", message)


_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')


def _stack(child: _Child, seconds: float) -> str:
    """Where the child is: it writes its stack on SIGUSR1 (faulthandler), also when it hangs in C."""
    child.tail.clear()
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.process.pid, signal.SIGUSR1)
    child.drain(seconds)
    frames = [found for line in child.tail for found in _FRAME.findall(line)]
    own = [frame for frame in frames if "/bowsprit_runtime/" not in frame[0] and not frame[0].startswith("<")]
    place = next((frame for frame in own if "/plugins/" in frame[0]), own[0] if own else None)
    return f"; it was in {place[2]} ({short(place[0])}:{place[1]})" if place else ""


def _last_words(child: _Child) -> str:
    said = [line.strip() for line in child.tail if line.strip()]
    return "; its last words: " + " | ".join(said[-3:]) if said else ""


# ---- memory ------------------------------------------------------------------------------------------------

_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(files: Sequence[Path] = _LIMIT_FILES) -> int | None:
    """What the container, or else the machine, may use at most."""
    limits = [int(text) for text in map(_text, files) if text.isdigit()]
    machine = re.search(r"MemTotal:\s+(\d+) kB", _text(Path("/proc/meminfo")))
    if machine:
        limits.append(int(machine.group(1)) * 1024)
    return min(limits, default=None)


def unreclaimable(pid: int) -> int:
    """Bytes of anonymous and shared memory of a process and its descendants."""
    status = _text(Path(f"/proc/{pid}/status"))
    own = sum(int(kib) * 1024 for kib in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+) kB", status))
    children = _text(Path(f"/proc/{pid}/task/{pid}/children")).split()
    return own + sum(unreclaimable(int(child)) for child in children)


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
