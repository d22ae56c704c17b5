"""examples/plugin: what the API server would take, for the models and plugins of this repository."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.api.validate import validate
from e2e.models import tiny

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(ROOT.glob("examples/plugin/*.yaml"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def manifests(request: pytest.FixtureRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """ConfigMap and ModelDeployment."""
    config_map, model = yaml.safe_load_all(request.param.read_text(encoding="utf-8"))
    return config_map, model


def test_the_api_server_would_take_it(manifests: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert validate(manifests[1]) == []


def test_the_config_is_that_of_the_checkpoint_in_the_claim(
    manifests: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    config_map, model = manifests
    kind = model["spec"]["model"]["uri"].removeprefix("pvc://models/")
    assert json.loads(config_map["data"]["config.json"]) == tiny.KINDS[kind][0]
    assert model["spec"]["model"]["config"]["configMapRef"]["name"] == config_map["metadata"]["name"]


def test_the_plugin_has_the_entry_points_that_are_named(
    manifests: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    (plugin,) = manifests[1]["spec"]["plugins"]
    image = plugin["image"].removeprefix("registry.example.com/plugins/")
    name, _, version = image.partition(":")
    project = tomllib.loads((ROOT / "images/plugin-example" / name / "pyproject.toml").read_text())["project"]
    offered = {entry for group in project["entry-points"].values() for entry in group}
    assert set(plugin["entryPoints"]) <= offered
    assert project["version"] == version


def test_the_word_of_the_example_is_ahoy() -> None:
    (*_, model) = yaml.safe_load_all((ROOT / "examples/plugin/my-opt.yaml").read_text(encoding="utf-8"))
    assert model["spec"]["architecture"]["hfOverrides"] == {"my_opt_token_id": tiny.AHOY_ID}
