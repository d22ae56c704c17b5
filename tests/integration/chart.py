"""The chart as Helm sees it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bowsprit.cluster import access
from e2e.cluster.helm import CHART, RELEASE, helm

CRD = "modeldeployments.bowsprit.dev"

Json = dict[str, Any]


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
