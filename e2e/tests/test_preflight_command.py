"""`bowsprit preflight` on a cluster: what it prints, its exit codes, and that it takes everything away."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.tests.small_plugins import ARCHITECTURE, ENTRY_POINT
from e2e.tests.stage import CLAIM, Stage

pytestmark = pytest.mark.e2e

NAME = "by-hand"
HANG_SECONDS = 60
"""Several times what the import of vLLM takes: the step that takes longest has to be the plugin's."""


@pytest.fixture
def model(stage: Stage, small_plugins: str) -> dict[str, Any]:
    """A ModelDeployment with a plugin in which nothing is wrong; it is never applied."""
    return {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": NAME, "namespace": stage.namespace},
        "spec": {
            "model": {"uri": f"pvc://{CLAIM}/llama"},
            "architecture": {"override": ARCHITECTURE},
            "plugins": [{"image": small_plugins, "path": "/good", "entryPoints": [ENTRY_POINT]}],
            "accelerator": {"resource": stage.target.resource},
            "engine": stage.engine(),
        },
    }


def test_a_model_that_would_start(stage: Stage, model: Mapping[str, Any], tmp_path: Path) -> None:
    done = prove(stage, model, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{stage.namespace}/{NAME}: Ok" in done.stdout
    assert "  Engine: vllm " in done.stdout
    assert f"  Architecture: {ARCHITECTURE}" in done.stdout
    assert f"  Plugin my-plugin 1.0: {ARCHITECTURE}" in done.stdout
    assert f"Job {NAME}-preflight-" in done.stderr
    wait_gone(stage)


def test_a_plugin_that_hangs_is_told_within_the_time_that_is_given(
    stage: Stage, model: dict[str, Any], tmp_path: Path
) -> None:
    model["spec"]["plugins"][0]["path"] = "/hangs"
    done = prove(stage, model, tmp_path, f"--time-limit={HANG_SECONDS}")
    assert done.returncode == 3, done.stderr
    assert f"{stage.namespace}/{NAME}: Broken" in done.stdout
    assert "PluginTimedOut (plugin): importing my-plugin: my_plugin = my_plugin:register took" in done.stdout
    assert f"preflight has {HANG_SECONDS} s" in done.stdout
    assert "my_plugin/__init__.py:2" in done.stdout
    wait_gone(stage)


def test_what_comes_to_no_verdict(stage: Stage, model: dict[str, Any], tmp_path: Path) -> None:
    model["spec"]["plugins"][0]["path"] = "/nowhere"
    done = prove(stage, model, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "no verdict: " in done.stdout
    assert "nothing could be copied out of plugin image" in done.stdout
    wait_gone(stage)


def prove(
    stage: Stage, model: Mapping[str, Any], folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    file = folder / "model.yaml"
    file.write_text(yaml.safe_dump(dict(model)))
    command = [
        *(sys.executable, "-m", "bowsprit.cli.main", "preflight"),
        *(f"--filename={file}", f"--kubeconfig={stage.target.kubeconfig}"),
        *(f"--runtime-image={stage.target.runtime}", *arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def wait_gone(stage: Stage) -> None:
    """Until nothing is left of the Job."""

    def gone() -> bool:
        items = stage.get("jobs,pods")["items"]
        return not any(each["metadata"]["name"].startswith(f"{NAME}-preflight-") for each in items)

    stage.wait("the Job and its pod to be gone", gone)
