"""A node that does not answer: its kubelet stands still, while its containers go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.tests.targets import OWN


@contextmanager
def silent(node: str) -> Iterator[None]:
    """Stops the kubelet of a node of this machine while the block runs."""
    if OWN:
        pytest.skip("silences kubelets of this machine's nodes only")
    kubelet = _kubelet(node)
    os.kill(kubelet, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(kubelet, signal.SIGCONT)


def _kubelet(node: str) -> int:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            program, *flags = _command(process)
            if Path(program).name == "kubelet" and f"--hostname-override={node}" in flags:
                return int(process.name)
    raise AssertionError(f"no kubelet of {node} runs on this machine")


def _command(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_text().split("\0")
    except OSError:  # it has ended
        return [""]
