"""Liveness of a rank without a server.

vLLM does not notice the loss of the head: the rank waits for it for ever, and a restarted head finds no rank
to join. So a rank that has met its head must be able to meet it again, and workers that were seen must still
be there.

A rank that has not met its head yet is starting, which may take long, and is alive. Once met, the head is
remembered by its IP address, which is the head pod's for life: a DNS that is down ends no model.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

CONNECT_SECONDS = 2
_WORKER = "VLLM::"
"""How vLLM names its processes (vllm/utils/system_utils.py)."""


@dataclass(frozen=True)
class Rank:
    """What is known of this pod's rank; kept in a file between probes."""

    pid: int
    started: str
    """Start time of the process in clock ticks since boot: a pid alone may be another's by now."""
    head: str | None = None
    """Address of the head, for ranks without a server; None when there is nothing to meet."""
    port: int = 0
    met: str = ""
    """IP address of the head, once it answered."""
    workers: int = 0
    """Most worker processes that were seen."""


def main(_: list[str]) -> int:
    rank = recalled()
    if rank is None:
        return 0
    rank, wrong = judge(rank, _meet(rank), len(_workers(rank.pid)))
    _keep(rank)
    if wrong:
        print(f"bowsprit: {wrong}")
    return 1 if wrong else 0


def judge(rank: Rank, answered: str, workers: int) -> tuple[Rank, str]:
    """What is known from now on, and what is wrong (nothing: empty). `answered` is the head's IP address."""
    known = replace(rank, met=rank.met or answered, workers=max(rank.workers, workers))
    if workers < known.workers:
        lost = known.workers - workers
        return known, f"{lost} of vLLM's {known.workers} worker processes ended, and vLLM goes on without"
    if known.met and not answered:
        return known, f"the head of the group no longer answers at {rank.head}:{rank.port}"
    return known, ""


def remember(head: tuple[str, int] | None) -> None:
    """Called by the process that becomes vLLM, before it does."""
    address, port = head or (None, 0)
    started = _stat(Path("/proc/self"))
    _keep(Rank(os.getpid(), started[19] if started else "", address, port))


def _meet(rank: Rank) -> str:
    """IP address of the head when it answers; empty when it does not, and when there is none."""
    if not rank.head:
        return ""
    try:
        with socket.create_connection((rank.met or rank.head, rank.port), CONNECT_SECONDS) as head:
            return str(head.getpeername()[0])
    except OSError:
        return ""


def _workers(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """Living children of vLLM that carry its name; a zombie has ended."""
    found = []
    for folder in proc.iterdir():
        stat = _stat(folder) if folder.name.isdigit() else []
        if stat and stat[1] == str(pid) and stat[0] != "Z" and _name(folder).startswith(_WORKER):
            found.append(int(folder.name))
    return found


def _stat(folder: Path) -> list[str]:
    """Fields of /proc/<pid>/stat after the name: state first, then the parent; [19] is the start time."""
    try:
        return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _name(folder: Path) -> str:
    """The name that a process gave itself; zombies keep it."""
    try:
        return (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _file() -> Path:
    return Path(tempfile.gettempdir(), "bowsprit-rank.json")


def _keep(rank: Rank) -> None:
    scratch = _file().with_suffix(f".{os.getpid()}")
    try:
        scratch.write_text(json.dumps(asdict(rank)), encoding="utf-8")
        scratch.replace(_file())
    except OSError as refused:
        print(f"bowsprit: liveness cannot keep what it saw in {_file()} ({refused.strerror})")


def recalled() -> Rank | None:
    """None before vLLM is started, and when what was kept is of an earlier container."""
    try:
        kept: Mapping[str, object] = json.loads(_file().read_text(encoding="utf-8"))
        rank = Rank(**kept)  # type: ignore[arg-type]
    except (OSError, ValueError, TypeError):
        return None
    stat = _stat(Path(f"/proc/{rank.pid}"))
    return rank if stat and stat[19] == rank.started else None
