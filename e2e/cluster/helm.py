"""Real Helm, and the chart that it installs."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster.build import ensure_programs
from e2e.cluster.programs import HELM

CHART = Path(__file__).parents[2] / "charts" / "bowsprit"
RELEASE = "bowsprit"


class HelmFailed(Exception):
    """Helm ended with an error; the message holds the command and Helm's own words."""


def helm(*arguments: str, values: Mapping[str, Any] | None = None, kubeconfig: Path | None = None) -> str:
    """What Helm prints. Raises HelmFailed."""
    given = () if values is None else ("--values=-",)
    known = () if kubeconfig is None else (f"--kubeconfig={kubeconfig}",)
    text = None if values is None else json.dumps(values)
    command = [_binary(), *arguments, *given, *known]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HelmFailed(f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout


def next_version(directory: Path) -> Path:
    """The chart of a version to come, whose CRD has one field more: `newField`."""
    path = directory / "next"
    shutil.copytree(CHART, path)
    about = yaml.safe_load((path / "Chart.yaml").read_text())
    (path / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "0.2.0", "appVersion": "v0.2.0"}))
    file = path / "files" / "modeldeployments-spec.yaml"
    definition = yaml.safe_load(file.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["newField"] = {"type": "string"}
    file.write_text(yaml.safe_dump(definition))
    return path


@functools.cache
def _binary() -> str:
    return ensure_programs([HELM]).binary("helm")
