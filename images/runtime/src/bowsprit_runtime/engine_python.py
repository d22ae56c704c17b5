"""Which Python is the engine's: images exist whose `python3` is the system's while vLLM lives in a venv."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path


def elsewhere() -> str | None:
    """The Python that runs the `vllm` on PATH when this one has no vLLM; None when there is no better one."""
    if importlib.util.find_spec("vllm"):
        return None
    script = shutil.which("vllm")
    python = _interpreter(Path(script)) if script else None
    same = python is not None and os.path.abspath(python) == os.path.abspath(sys.executable)  # noqa: PTH100 - no symlinks: a venv's Python is one
    return None if same else python


def _interpreter(script: Path) -> str | None:
    """The Python in the first line of a console script."""
    with script.open("rb") as file:
        words = file.readline(1024).decode("utf-8", "replace").split()
    if not words or not words[0].startswith("#!"):
        return None
    python = words[0][2:]
    return python if Path(python).name.startswith("python") and os.access(python, os.X_OK) else None
