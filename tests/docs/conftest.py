"""The clusters that pages need: that of `make demo KEEP=1`, and one to install Bowsprit in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from docs.pages import ROOT
from e2e.cluster.build import ensure_programs
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.nodes import cpu_node, create_nodes
from e2e.cluster.programs import CONTROL_PLANE, HELM

DEMO = (sys.executable, "-m", "e2e.demo")


Shell = Callable[[str, Path], subprocess.CompletedProcess[str]]
"""Runs a command in a folder, with the programs and the kubeconfig of a cluster."""


@dataclass(frozen=True)
class Demo:
    """A demo that was played with --keep and is still up."""

    told: str
    """What it printed."""
    environment: Mapping[str, str]
    """With the two variables that it told its reader to export."""

    def shell(self, command: str, directory: Path = ROOT) -> subprocess.CompletedProcess[str]:
        return _shell(self.environment, command, directory)

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


@pytest.fixture
def bare() -> Iterator[Shell]:
    """A cluster with a node and without Bowsprit; helm and kubectl are found."""
    programs = ensure_programs((*CONTROL_PLANE, HELM))
    folders = [str(Path(programs.binary(name)).parent) for name in ("helm", "kubectl")]
    with ControlPlane() as cluster:
        create_nodes(cluster.kubeconfig, [cpu_node("bare")])
        paths = {"KUBECONFIG": str(cluster.kubeconfig), "PATH": ":".join([*folders, os.environ["PATH"]])}
        yield partial(_shell, {**os.environ, **paths})


def _shell(environment: Mapping[str, str], command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=directory,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=180,
    )
