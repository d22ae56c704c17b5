"""The cluster of `make demo KEEP=1`, for pages whose commands need it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from docs.pages import ROOT

DEMO = (sys.executable, "-m", "e2e.demo")


@dataclass(frozen=True)
class Demo:
    """A demo that was played with --keep and is still up."""

    told: str
    """What it printed."""
    environment: Mapping[str, str]
    """With the two variables that it told its reader to export."""

    def shell(self, command: str, directory: Path = ROOT) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=directory,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=120,
        )

    def reset(self) -> None:
        """Brings the three models back to what the examples say."""
        command = (
            "kubectl delete mdep --all --timeout=60s && kubectl apply -f examples/twelve-gpus && "
            "kubectl wait --for=condition=Ready mdep --all --timeout=90s"
        )
        done = self.shell(command)
        assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    directory = tmp_path_factory.mktemp("demo")
    options = ["--dir", str(directory / "kept")]
    played = subprocess.run(
        [*DEMO, "--keep", *options], cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )
    assert played.returncode == 0, played.stdout[-3000:] + played.stderr
    exports = dict(re.findall(r"^ *export (\w+)=(\S+)$", played.stdout, re.MULTILINE))
    exports["PATH"] = exports["PATH"].replace("$PATH", os.environ["PATH"])
    try:
        yield Demo(played.stdout, {**os.environ, **exports})
    finally:
        subprocess.run([*DEMO, "stop", *options], cwd=ROOT, check=True, capture_output=True, timeout=120)
