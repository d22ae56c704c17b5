"""A worker stops when its head no longer listens."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"


def drain(tmp_path: Path, port: int, head: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "TMPDIR": str(tmp_path), "LWS_LEADER_ADDRESS": head}
    return subprocess.Popen([sys.executable, str(SRC), "drain", str(port)], env=environ, text=True)


def it_waits(tmp_path: Path, name: str) -> None:
    head = socket.create_server(("127.0.0.1", 0))
    with head, drain(tmp_path, head.getsockname()[1], name) as draining:
        for _ in range(2):
            head.accept()[0].close()
        assert draining.poll() is None
        head.close()
        assert draining.wait() == 0


def test_it_waits_until_the_heads_port_is_closed(tmp_path: Path) -> None:
    it_waits(tmp_path, "127.0.0.1")


def test_a_head_that_was_met_is_known_without_dns(tmp_path: Path) -> None:
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    met = {"pid": os.getpid(), "started": started, "head": "head.invalid", "port": 1, "met": "127.0.0.1"}
    (tmp_path / "bowsprit-rank.json").write_text(json.dumps(met))
    it_waits(tmp_path, "head.invalid")


def test_a_head_that_is_gone_needs_no_waiting(tmp_path: Path) -> None:
    with drain(tmp_path, 9, "127.0.0.1") as draining:
        assert draining.wait() == 0


def test_a_pod_without_a_head_does_not_wait(tmp_path: Path) -> None:
    with drain(tmp_path, 9, "") as draining:
        assert draining.wait() == 0
