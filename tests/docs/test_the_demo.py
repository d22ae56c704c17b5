"""`make demo`: what it promises on its screen, what it leaves, and how it ends when something goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.pages import ROOT
from e2e.cluster.waiting import wait_until
from e2e.demo.__main__ import NEXT
from tests.docs.conftest import DEMO, Demo

pytestmark = pytest.mark.integration

FAILING = """
import sys
import e2e.demo.story as story
from e2e.demo.__main__ import main
story.GPUS = {**story.GPUS, "a-model-that-nobody-applies": 1}
story.SECONDS = 5.0
sys.argv = ["demo"]
sys.exit(main())
"""


def test_it_shows_twelve_of_twelve_a_lost_node_a_switch_and_the_way_back(demo: Demo) -> None:
    for line in (
        "no container runs there and no model is loaded",
        "12 of 12 GPUs: 3 + 5 + 4.",
        "Why mixtral-8x22b waits:",
        "5 GPUs of A100-80GB-PCIe; 1 free, 4 short.",
        "dbrx makes room for mixtral-8x22b.",
        "12 of 12 again. Nobody was moved for it: llama-3-1-70b and mixtral-8x22b stayed.",
    ):
        assert line in demo.told
    assert "\x1b" not in demo.told, "where nobody looks there are no colours"


def test_the_commands_that_it_names_work(demo: Demo) -> None:
    demo.reset()
    for command in NEXT:
        assert command in demo.told
        done = demo.shell(command if "--watch" not in command else f"timeout 2 {command} || test $? = 124")
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    done = demo.shell(
        "kubectl wait --for=jsonpath='{.status.readyReplicas}'=2 mdep/llama-3-1-70b --timeout=60s"
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A test run in a shell's background is deaf to SIGINT, and what it starts would be too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupted_it_leaves_nothing_running(tmp_path: Path) -> None:
    with subprocess.Popen(
        DEMO,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        wait_until("the control plane to start", lambda: len(_processes_of(tmp_path)) > 1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted; everything is stopped." in output
    assert _processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_without_the_promised_end_it_fails_and_shows_where_it_stands(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Waited 5 s for three models Ready, in vain." in done.stderr
    assert "lease.acquired" in done.stderr, "the end of the operator's log"
    assert next(tmp_path.glob("bowsprit-demo-*/logs/bowsprit.log")).exists()
    assert _processes_of(tmp_path) == []


def _processes_of(directory: Path) -> list[str]:
    """Command lines that name the directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in command:
            found.append(command)
    return found
