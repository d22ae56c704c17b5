"""Plugins are installed by this Python's own pip, and all that is wrong with them is told at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime import engine_pip, reasons
from bowsprit_runtime.install import install, main
from bowsprit_runtime.plugins import Plugin
from images.runtime.tests import made
from images.runtime.tests.made import wheel

SRC = Path(__file__).parents[1] / "src"


def from_image(tmp_path: Path, name: str) -> Plugin:
    return Plugin(tmp_path / "site" / name, image=f"{name}:1", path="/plugins", wheels=tmp_path / name)


@pytest.mark.usefixtures("engine")
def test_wheels_are_installed_without_their_dependencies_into_a_fresh_folder(tmp_path: Path) -> None:
    wheel(tmp_path / "a", "my-arch", metadata="Requires-Dist: einops==0\n")
    wheel(tmp_path / "a", "my-other")
    plugin = from_image(tmp_path, "a")
    plugin.target.mkdir(parents=True)
    (plugin.target / "left_over.py").touch()
    done = install([plugin])
    assert (done.faults, done.warnings) == ([], [])
    assert [str(one) for one in done.unmet] == [
        "my-arch 1.0 asks for einops==0, and neither the engine image nor a plugin has it"
    ]
    assert {file.name for file in plugin.target.glob("*.py")} == {"my_arch.py", "my_other.py"}


@pytest.mark.usefixtures("engine")
def test_every_fault_of_every_plugin_is_told(tmp_path: Path) -> None:
    wheel(tmp_path / "a", "torch", "2.9.0", files={"torch/__init__.py": ""})
    wheel(tmp_path / "a", "shared")
    wheel(tmp_path / "b", "shared", "2.0")
    wheel(tmp_path / "c", "old", tag="cp27-none-any")
    done = install([from_image(tmp_path, name) for name in "abc"])
    assert [fault.reason for fault in done.faults] == [
        reasons.WHEEL_INCOMPATIBLE,
        reasons.SHADOWS_ENGINE,
        reasons.PLUGINS_OVERLAP,
    ]


@pytest.mark.usefixtures("engine")
def test_path_files_do_nothing_in_a_plugins_folder_and_are_named(tmp_path: Path) -> None:
    wheel(tmp_path / "a", "my-arch", files={"my_arch.py": "", "my_arch_hooks.pth": "import my_arch"})
    (warning,) = install([from_image(tmp_path, "a")]).warnings
    assert warning.startswith(
        "a:1 brings my_arch_hooks.pth, which Python does not run from a plugin's folder"
    )


def test_an_engine_image_without_vllm_is_named_before_anything_is_installed(tmp_path: Path) -> None:
    wheel(tmp_path / "a", "my-arch")
    plugin = from_image(tmp_path, "a")
    (fault,) = install([plugin]).faults
    assert (fault.reason, fault.blame) == (reasons.ENGINE_MISSING, "image")
    assert not plugin.target.exists()


@pytest.mark.usefixtures("engine")
def test_an_image_without_pip_uses_the_one_of_ensurepip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = [file for folder in engine_pip.wheel_folders() for file in folder.glob("pip-*.whl")]
    if not carried:
        pytest.skip("this Python's ensurepip carries no pip")
    monkeypatch.setattr(engine_pip, "own", lambda: None)
    wheel(tmp_path / "a", "my-arch")
    assert install([from_image(tmp_path, "a")]).faults == []
    assert (tmp_path / "site" / "a" / "my_arch.py").exists()


@pytest.mark.usefixtures("engine")
def test_an_image_without_any_pip_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_pip, "own", lambda: None)
    monkeypatch.setattr(engine_pip, "wheel_folders", list)
    wheel(tmp_path / "a", "my-arch")
    (fault,) = install([from_image(tmp_path, "a")]).faults
    assert (fault.reason, fault.blame) == (reasons.INSTALL_FAILED, "image")


# ---- as the init container runs it ----


def run(tmp_path: Path, *plugins: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    engine = made.engine(tmp_path / "engine")
    environ = {
        **os.environ,
        "PYTHONPATH": str(engine),
        "BOWSPRIT_PLUGINS": json.dumps(plugins),
        "PIP_CONFIG_FILE": os.devnull,
    }
    command = [sys.executable, str(SRC), "install"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def entry(tmp_path: Path, name: str) -> dict[str, Any]:
    return {
        "target": str(tmp_path / "site" / name),
        "image": f"{name}:1",
        "path": "/plugins",
        "wheels": str(tmp_path / name),
        "entryPoints": None,
    }


def test_what_is_there_in_the_end_is_said(tmp_path: Path) -> None:
    wheel(tmp_path / "a", "my-arch", metadata="Requires-Dist: vllm<0.30\n")
    done = run(tmp_path, entry(tmp_path, "a"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"bowsprit: {tmp_path}/site/a: my-arch 1.0 from a:1",
        "bowsprit: warning: my-arch 1.0 asks for vllm<0.30, and the pod has 0.32.0",
    ]


def test_a_fault_ends_the_container_with_1_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    done = run(tmp_path, entry(tmp_path, "a"))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "bowsprit: PluginHasNoWheels: a:1 holds no *.whl in /plugins. "
        f"{reasons.REASONS[reasons.NO_WHEELS].cure}\n"
    )


def test_a_network_fault_ends_it_with_75_so_that_it_is_tried_again(tmp_path: Path) -> None:
    plugin = {
        "target": str(tmp_path / "site"),
        "requirement": "my-arch==1.0",
        "hashes": [],
        "index": "http://127.0.0.1:9/wheels",
        "entryPoints": None,
    }
    done = run(tmp_path, plugin)
    assert done.returncode == 75
    assert "bowsprit: PluginIndexUnreachable: " in done.stdout


def test_no_plugins_are_no_work(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.usefixtures("engine")
def test_faults_are_left_as_a_report_where_the_kubelet_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv(
        "BOWSPRIT_PLUGINS",
        json.dumps(
            [
                {
                    "target": str(tmp_path / "site"),
                    "image": "a:1",
                    "path": "/plugins",
                    "wheels": str(tmp_path / "empty"),
                }
            ]
        ),
    )
    log = tmp_path / "termination-log"
    log.touch()
    assert main([str(log)]) == 1
    report = json.loads(log.read_text())
    assert report["verdict"] == "Broken"
    assert [fault["reason"] for fault in report["faults"]] == [reasons.NO_WHEELS]


@pytest.mark.usefixtures("engine")
def test_no_file_is_made_where_no_kubelet_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = {"target": str(tmp_path / "site"), "image": "a:1", "path": "/p", "wheels": str(tmp_path / "no")}
    monkeypatch.setenv("BOWSPRIT_PLUGINS", json.dumps([plugin]))
    assert main([str(tmp_path / "log")]) == 1
    assert not (tmp_path / "log").exists()
