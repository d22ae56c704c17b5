"""What `make demo` answers to a person who does things twice or out of order. No cluster is started."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

import pytest

from e2e.demo import __main__ as demo


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["demo", *arguments])
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    return demo.main()


def test_stopping_what_does_not_run_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "stop", "--dir", str(tmp_path)) == 0
    assert capsys.readouterr().out == "No demo cluster runs. Start one with: make demo KEEP=1\n"


def test_a_second_demo_that_stays_says_how_to_use_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Programs:
        def binary(self, name: str) -> Path:
            return Path("/programs/bin", name)

    monkeypatch.setattr(demo, "ensure_programs", Programs)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert call(monkeypatch, "--keep", "--dir", str(tmp_path)) == 1
    told = capsys.readouterr().err
    assert f"export KUBECONFIG={tmp_path}/kubeconfig\n" in told
    assert "export PATH=/programs/bin:" in told
    assert told.endswith("To stop it: make demo-stop\n")
