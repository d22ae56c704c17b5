"""What the image holds, and that it stands on the standard library of Python 3.9 alone."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from images.runtime import tree

ROOT = Path(__file__).parents[3]
MODULES = sorted(tree.SOURCE.rglob("*.py"))
THE_ENGINES = {"vllm", "torch", "pip", "huggingface_hub", "transformers"}
"""Imported where they are needed, from the engine image."""


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(tree.SOURCE)))
def test_a_module_is_python_39_and_imports_the_standard_library_only(file: Path) -> None:
    module = ast.parse(file.read_text(), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(module)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names | {"bowsprit_runtime"} | THE_ENGINES


def test_its_distribution_has_the_projects_version() -> None:
    (runtime,) = importlib.metadata.distributions(path=[str(tree.SOURCE)])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (runtime.metadata["Name"], runtime.version) == ("bowsprit-runtime", project["version"])


def test_the_folder_runs_without_being_installed(tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    tree.lay_out(folder, Path("/bin/true"))
    assert os.access(folder / "bin" / "busybox", os.X_OK)
    assert not list(folder.rglob("__pycache__"))
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(folder), "alive"], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_command_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(tree.SOURCE), "serve"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "{install|preflight|launch|" in done.stderr
