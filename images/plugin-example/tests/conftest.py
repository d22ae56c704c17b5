"""The plugins' wheels, and a real vLLM that has them as a pod does: by its own pip, on the PYTHONPATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOM = Path(__file__).resolve().parents[1]
RUNTIME = ROOM.parent / "runtime" / "src"
TIME_LIMIT_S = 1800

Answers = list[list[dict[str, Any]]]
"""By engine and prompt; see complete.py."""


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folder of each example -> its wheel, built from a copy: the build leaves files beside the source."""
    folder = tmp_path_factory.mktemp("wheels")
    return {name: _wheel(name, folder) for name in ("my-opt", "uneven-llama")}


def _wheel(name: str, folder: Path) -> Path:
    source = shutil.copytree(ROOM / name, folder / "source" / name)
    target = folder / name
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run(
        [*command, "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), str(source)], check=True
    )
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def engine_python() -> str:
    python = os.environ.get("BOWSPRIT_VLLM_PYTHON")
    if not python:
        pytest.skip("BOWSPRIT_VLLM_PYTHON names no Python with vLLM")
    return python


@pytest.fixture(scope="session")
def plugins(wheels: dict[str, Path], engine_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("plugins")
    command = [engine_python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", str(target), *map(str, wheels.values())], check=True)
    return target


@pytest.fixture(scope="session")
def complete(
    engine_python: str, plugins: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Answers]:
    """complete(model, options, loads=entry points): the answers of one engine per item of `options`."""
    cache = tmp_path_factory.mktemp("cache")

    def run(model: Path, options: Sequence[dict[str, Any]], *, loads: str) -> Answers:
        answers = tmp_path_factory.mktemp("answers") / "answers.json"
        common = {"model": str(model), "dtype": "float32", "max_model_len": 256}
        ask = {
            "options": [{**common, **options_of_one} for options_of_one in options],
            "prompts": ["hello there", "a ship"],
            "tokens": 24,
            "answers": str(answers),
        }
        subprocess.run(
            [engine_python, str(ROOM / "tests" / "complete.py")],
            input=json.dumps(ask),
            text=True,
            env=_environment(plugins, cache, loads),
            timeout=TIME_LIMIT_S,
            check=True,
        )
        told: Answers = json.loads(answers.read_text(encoding="utf-8"))
        return told

    return run


def _environment(plugins: Path, cache: Path, loads: str) -> dict[str, str]:
    """The engine's core stays in the process that asks, which imports vLLM once for all engines."""
    return {
        **os.environ,
        "PYTHONPATH": f"{plugins}:{RUNTIME}",
        "VLLM_PLUGINS": loads,
        "VLLM_CACHE_ROOT": str(cache),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
