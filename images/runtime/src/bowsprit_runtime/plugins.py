"""BOWSPRIT_PLUGINS: where each plugin comes from, where it goes, and what of it vLLM is to load."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENV = "BOWSPRIT_PLUGINS"

MODEL_ARCHITECTURES_GROUP = "vllm.model_architectures"
"""Entry-point group of vLLM pull request 7438."""
MODEL_ARCHITECTURES_PLUGIN = "bowsprit_model_architectures"
"""The runtime's own vLLM plugin, which registers what is in that group (model_architectures.py)."""


@dataclass(frozen=True)
class Plugin:
    """One entry of BOWSPRIT_PLUGINS: wheels of an image, or a requirement for an index (decision 0012)."""

    target: Path
    """Folder that it is installed into; it goes on the PYTHONPATH."""
    entry_points: tuple[str, ...] = ()
    """Names that vLLM is to load; empty when the user named none."""
    image: str = ""
    path: str = ""
    """Folder of the wheels in the image, as the user knows it."""
    wheels: Path | None = None
    """Where they were copied to."""
    requirement: str = ""
    hashes: tuple[str, ...] = ()
    index: str = ""

    @property
    def source(self) -> str:
        """The words by which the user knows it."""
        return self.image or self.requirement


def plugins_of(environ: Mapping[str, str]) -> list[Plugin]:
    """In the order of installation; none when the variable is absent."""
    return [_plugin(entry) for entry in json.loads(environ.get(ENV) or "[]")]


def _plugin(entry: Mapping[str, Any]) -> Plugin:
    wheels = entry.get("wheels")
    return Plugin(
        target=Path(entry["target"]),
        entry_points=tuple(entry.get("entryPoints") or ()),
        image=entry.get("image") or "",
        path=entry.get("path") or "",
        wheels=Path(wheels) if wheels else None,
        requirement=entry.get("requirement") or "",
        hashes=tuple(entry.get("hashes") or ()),
        index=entry.get("index") or "",
    )
