"""When a rank without a server counts as dead."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bowsprit_runtime.alive import Rank, judge

SRC = Path(__file__).parents[1] / "src"
STARTING = Rank(1, "0", "m-0", 29501)

JUDGED: dict[str, tuple[Rank, str, int, str]] = {
    "it starts, and the head does not listen yet": (STARTING, "", 0, ""),
    "it starts, and has its workers": (STARTING, "", 1, ""),
    "it met its head": (STARTING, "10.0.0.1", 1, ""),
    "it lost its head": (
        Rank(1, "0", "m-0", 29501, met="10.0.0.1", workers=1),
        "",
        1,
        "the head of the group no longer answers at m-0:29501",
    ),
    "a worker ended, and vLLM stays": (
        Rank(1, "0", "m-0", 29501, met="10.0.0.1", workers=2),
        "10.0.0.1",
        1,
        "1 of vLLM's 2 worker processes ended, and vLLM goes on without",
    ),
    "there is no head to meet": (Rank(1, "0"), "", 0, ""),
}


@pytest.mark.parametrize("case", JUDGED)
def test_judging(case: str) -> None:
    rank, answered, workers, words = JUDGED[case]
    known, wrong = judge(rank, answered, workers)
    assert wrong == words
    assert known.met == (rank.met or answered)
    assert known.workers == max(rank.workers, workers)


# ---- with real processes: a rank that is launched, and probes as the kubelet runs them ----

ENGINE = """
import os, sys, time
child = os.fork()
if not child:
    open("/proc/self/comm", "w").write("VLLM::Worker")
    while True: time.sleep(60)
print(child, flush=True)
while True: time.sleep(60)
"""


def probe(tmp_path: Path) -> tuple[int, str]:
    command = [sys.executable, str(SRC), "alive"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


@contextmanager
def launched(tmp_path: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A rank whose vLLM is a script, and the pid of its worker."""
    vllm = tmp_path / "bin" / "vllm"
    vllm.parent.mkdir(exist_ok=True)
    vllm.write_text(f"#!{sys.executable}\n{ENGINE}")
    vllm.chmod(0o755)
    start = "from bowsprit_runtime.launch import main; import sys; sys.exit(main(sys.argv[1:]))"
    arguments = [
        "model",
        "--nnodes",
        "2",
        "--master-addr",
        "127.0.0.1",
        f"--master-port={port}",
        "--headless",
    ]
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(SRC), "PATH": str(vllm.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", start, *arguments], env=environ, stdout=subprocess.PIPE, text=True
    ) as rank:
        assert rank.stdout
        worker = next(int(line) for line in rank.stdout if line.strip().isdigit())
        try:
            yield rank, worker
        finally:
            for pid in (worker, rank.pid):
                os.kill(pid, 9)


def test_a_rank_before_its_start_is_alive(tmp_path: Path) -> None:
    assert probe(tmp_path) == (0, "")


def test_a_rank_that_lost_its_head_is_dead(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        with launched(tmp_path, port):
            assert probe(tmp_path) == (0, "")
            head.close()
            lost = f"bowsprit: the head of the group no longer answers at 127.0.0.1:{port}\n"
            assert probe(tmp_path) == (1, lost)


def test_a_head_that_was_met_is_known_without_dns(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as head, launched(tmp_path, head.getsockname()[1]):
        assert probe(tmp_path) == (0, "")
        file = tmp_path / "bowsprit-rank.json"
        kept = json.loads(file.read_text())
        assert kept["met"] == "127.0.0.1"
        file.write_text(json.dumps({**kept, "head": "head.invalid"}))
        assert probe(tmp_path) == (0, "")


def test_a_rank_whose_head_is_not_there_yet_is_alive(tmp_path: Path) -> None:
    with launched(tmp_path, 9):
        assert [probe(tmp_path) for _ in range(2)] == [(0, ""), (0, "")]


def test_a_rank_that_lost_a_worker_is_dead(tmp_path: Path) -> None:
    with launched(tmp_path, 9) as (_, worker):
        assert probe(tmp_path) == (0, "")
        ended = os.pidfd_open(worker)
        os.kill(worker, 9)
        select.select([ended], [], [])
        os.close(ended)
        lost = "bowsprit: 1 of vLLM's 1 worker processes ended, and vLLM goes on without\n"
        assert probe(tmp_path) == (1, lost)


def test_what_an_earlier_container_left_is_forgotten(tmp_path: Path) -> None:
    earlier = {
        "pid": os.getpid(),
        "started": "1",
        "head": "127.0.0.1",
        "port": 9,
        "met": "127.0.0.1",
        "workers": 2,
    }
    (tmp_path / "bowsprit-rank.json").write_text(json.dumps(earlier))
    assert probe(tmp_path) == (0, "")
