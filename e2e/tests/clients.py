"""Clients of a model that run beside a test, and what became of their requests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from e2e.tests import load
from e2e.tests.stage import CLIENT, Stage


@dataclass(frozen=True)
class Request:
    kind: str
    begin: float
    """Seconds since 1970, as `end`."""
    end: float
    tokens: int | None
    """None when it failed."""
    wrong: str | None


@dataclass
class Clients:
    requests: list[Request] = field(default_factory=list)
    """Filled when the clients have ended."""

    def failed(self, before: float = float("inf")) -> list[Request]:
        """Requests that failed, of those that began before a moment."""
        return [each for each in self.requests if each.wrong and each.begin < before]

    def under_way(self, moment: float) -> list[Request]:
        return [each for each in self.requests if each.begin < moment < each.end]


@contextmanager
def clients(stage: Stage, model: str, kinds: Sequence[str], long_tokens: int = 1) -> Iterator[Clients]:
    """Clients (kinds of load.py) that ask a model through its Service while the block runs.

    What is under way at its end is finished.
    """
    target, source = stage.target, Path(load.__file__).read_text()
    command = [
        *(target.kubectl_path, f"--kubeconfig={target.kubeconfig}", f"--namespace={stage.namespace}"),
        *("exec", "--stdin", CLIENT, "--", "python3", "-c", source),
        *(stage.url(model), model, str(long_tokens), *kinds),
    ]
    found = Clients()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield found
        finally:
            output, _ = running.communicate()
    found.requests += [Request(**json.loads(line)) for line in output.splitlines()]
