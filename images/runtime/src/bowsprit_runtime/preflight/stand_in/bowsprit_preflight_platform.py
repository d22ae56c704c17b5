"""Lets a build of vLLM for GPUs be configured where there is none: it is told to be on a CPU.

On the path in preflight only. A platform plugin that comes with the user's plugins goes first: vLLM takes
one.
"""

from __future__ import annotations

import os
from importlib.metadata import entry_points

_GROUP = "vllm.platform_plugins"
_OWN = "bowsprit_preflight"


def register() -> str | None:
    """The platform's class for vLLM; None when another plugin brings one that is active here."""
    return None if any(map(_is_active, entry_points(group=_GROUP))) else "vllm.platforms.cpu.CpuPlatform"


def _is_active(entry: object) -> bool:
    name = getattr(entry, "name", "")
    allowed = os.environ.get("VLLM_PLUGINS")
    if name == _OWN or (allowed is not None and name not in allowed.split(",")):
        return False
    try:
        return entry.load()() is not None  # type: ignore[attr-defined]
    except Exception:
        return False  # vLLM too takes a platform plugin that fails for one that is not there
