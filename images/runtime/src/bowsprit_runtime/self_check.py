"""The self-check of spec.rollout.verify, as the processes of a pod share it: what is asked, and whether that
was answered.

`launch` begins it, `verify` carries it out, and `ready` waits for it. The answer is a file, for the life of
one container.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bowsprit_runtime.distributions import RUNTIME

ENVIRONMENT = "BOWSPRIT_VERIFY"


@dataclass(frozen=True)
class Check:
    url: str
    """Of the pod's own server."""
    model: str
    """Served name."""
    path: str
    prompt: str
    max_tokens: int
    contains: str = ""
    """Text that must be in the answer; empty when any will do."""

    def body(self) -> dict[str, Any]:
        said = {"model": self.model, "max_tokens": self.max_tokens, "temperature": 0}
        if self.path.endswith("/chat/completions"):
            return {**said, "messages": [{"role": "user", "content": self.prompt}]}
        return {**said, "prompt": self.prompt}


def check_of(environ: Mapping[str, str]) -> Check | None:
    """None where the spec asks for none."""
    text = environ.get(ENVIRONMENT)
    return Check(**json.loads(text)) if text else None


def begin(environ: Mapping[str, str], key: str | None) -> None:
    """Called by the process that becomes vLLM, before it does. `key`: the server's, when its arguments say
    it."""
    if check_of(environ) is not None:
        _mark().unlink(missing_ok=True)
        known = {**environ, "VLLM_API_KEY": key} if key else dict(environ)
        subprocess.Popen([sys.executable, str(RUNTIME), "verify", str(os.getpid())], env=known)


def passed() -> None:
    _mark().touch()


def is_open(environ: Mapping[str, str]) -> bool:
    """It is asked for, and was not passed yet."""
    return bool(environ.get(ENVIRONMENT)) and not _mark().exists()


def _mark() -> Path:
    return Path(tempfile.gettempdir(), "bowsprit-verified")
