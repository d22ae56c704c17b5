"""How Flux, kpt and Helm would judge an object: kstatus itself, the Go code that they run."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from e2e.cluster.build import ensure_programs
from e2e.cluster.programs import KSTATUS

CURRENT, IN_PROGRESS, FAILED = "Current", "InProgress", "Failed"


def kstatus(objects: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Status and message of each."""
    text = "\n".join(json.dumps(each) for each in objects)
    done = subprocess.run([_program()], input=text, capture_output=True, text=True, check=True)
    judged = [json.loads(line) for line in done.stdout.split("\n") if line]
    return [(each["status"], each["message"]) for each in judged]


@functools.cache
def _program() -> str:
    return ensure_programs([KSTATUS]).binary("kstatus")
