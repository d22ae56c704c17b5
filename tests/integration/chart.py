"""The chart as Helm sees it."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bowsprit.cluster import access
from docs.generators import chart
from docs.pages import ROOT
from e2e.cluster.build import ensure_programs
from e2e.cluster.programs import HELM

CHART = ROOT / chart.CHART
RELEASE = "bowsprit"
CRD = "modeldeployments.bowsprit.dev"

Json = dict[str, Any]


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


def render(values: Mapping[str, Any], path: Path = CHART) -> list[Json]:
    """The objects of a release."""
    return [each for each in yaml.load_all(template(values, path), yaml.CSafeLoader) if each]


def template(values: Mapping[str, Any], path: Path = CHART) -> str:
    """The text of a release."""
    return _template(json.dumps(values), path)


@functools.cache
def _template(values: str, path: Path) -> str:
    return helm("template", RELEASE, str(path), f"--namespace={access.NAMESPACE}", values=json.loads(values))


def of_kind(objects: list[Json], kind: str) -> list[Json]:
    return [each for each in objects if each["kind"] == kind]


def operator_pod(objects: list[Json]) -> Json:
    """The template of the operator's pods."""
    (deployment,) = of_kind(objects, "Deployment")
    return dict(deployment["spec"]["template"])


@functools.cache
def _binary() -> str:
    return ensure_programs([HELM]).binary("helm")
