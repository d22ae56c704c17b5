"""A pod on its way out closes its clients' connections, and stops when they have gone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime.leave import CloseConnections, main

SRC = Path(__file__).parents[1] / "src"
CLOSE = (b"connection", b"close")


@pytest.fixture(autouse=True)
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What says that the pod leaves; not there yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "bowsprit-leaves"


def answers(method: str = "POST", kind: str = "http") -> list[dict[str, Any]]:
    """What a client gets of an application behind the middleware."""
    sent: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": f"{kind}.response.start", "status": 200, "headers": [(b"x", b"y")]})
        await send({"type": f"{kind}.response.body", "body": b"tokens"})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("the application asks for nothing")

    asyncio.run(CloseConnections(application)({"type": kind, "method": method}, receive, send))
    return sent


def test_connections_stay_open_while_the_pod_stays() -> None:
    assert answers()[0]["headers"] == [(b"x", b"y")]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_answer_of_a_pod_that_leaves_closes_its_connection(method: str, mark: Path) -> None:
    mark.touch()
    head, body = answers(method)
    assert head["headers"] == [(b"x", b"y"), CLOSE]
    assert body == {"type": "http.response.body", "body": b"tokens"}


def test_what_is_no_http_passes_through(mark: Path) -> None:
    mark.touch()
    assert answers(kind="websocket")[0]["headers"] == [(b"x", b"y")]


@pytest.mark.parametrize(("method", "counts"), [("POST", True), ("GET", False)])
def test_work_puts_the_end_off_and_probes_do_not(method: str, counts: bool, mark: Path) -> None:
    mark.touch()
    os.utime(mark, (1, 1))
    answers(method)
    assert (mark.stat().st_mtime > 1) is counts


def leave(tmp_path: Path, *seconds: str, keep_alive: str = "5") -> subprocess.Popen[str]:
    environ = {**os.environ, "TMPDIR": str(tmp_path), "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": keep_alive}
    return subprocess.Popen(
        [sys.executable, str(SRC), "leave", *seconds], env=environ, text=True, stdout=subprocess.PIPE
    )


def test_it_marks_the_pod_and_ends_after_its_time(tmp_path: Path, mark: Path) -> None:
    with leave(tmp_path, "0", "0.1") as leaving:
        assert leaving.wait() == 0
    assert mark.exists()


def test_it_waits_while_answers_are_sent(tmp_path: Path, mark: Path) -> None:
    with leave(tmp_path, "0", "600", keep_alive="0") as leaving:
        while not mark.exists():
            assert leaving.poll() is None
        busy_until = time.time() + 3  # longer than it waits by itself
        os.utime(mark, (busy_until, busy_until))
        assert leaving.wait() == 0
        assert time.time() >= busy_until


def test_a_folder_that_cannot_be_written_is_told_and_the_time_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert main(["0", "0.1"]) == 0
    assert capsys.readouterr().out.startswith("bowsprit: connections stay open, for ")
