"""A worker stops when its head no longer listens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"


def drain(port: int, **environ: str) -> subprocess.Popen[str]:
    given = {**os.environ, **environ}
    return subprocess.Popen([sys.executable, str(SRC), "drain", str(port)], env=given, text=True)


def test_it_waits_until_the_heads_port_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        with drain(port, LWS_LEADER_ADDRESS="127.0.0.1") as draining:
            for _ in range(2):
                head.accept()[0].close()
            assert draining.poll() is None
            head.close()
            assert draining.wait() == 0


def test_a_head_that_is_gone_needs_no_waiting() -> None:
    with drain(9, LWS_LEADER_ADDRESS="127.0.0.1") as draining:
        assert draining.wait() == 0


def test_a_pod_without_a_head_does_not_wait() -> None:
    with drain(9, LWS_LEADER_ADDRESS="") as draining:
        assert draining.wait() == 0
