"""What is to be configured: the arguments as vLLM parsed them, the model's config.json, and the plugins."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bowsprit_runtime.preflight.checkpoint import Checkpoint
from bowsprit_runtime.preflight.loading import Loaded


@dataclass(frozen=True)
class Asked:
    namespace: argparse.Namespace
    config: dict[str, Any] | None
    """config.json; None where vLLM alone knows the way to it."""
    loaded: Sequence[Loaded]
    checkpoint: Checkpoint | None = None
    """Where its files can be seen."""

    @property
    def names(self) -> list[str]:
        """The architectures that vLLM will look for, in order."""
        overrides = self.namespace.hf_overrides if isinstance(self.namespace.hf_overrides, dict) else {}
        names = overrides.get("architectures") or (self.config or {}).get("architectures") or []
        return [name for name in names if isinstance(name, str)]

    @property
    def folders(self) -> tuple[str, ...]:
        """Where the plugins are."""
        return tuple(str(one.found.plugin.target) for one in self.loaded)
