"""What `kubectl get --watch` shows while a test acts: also what is there for a moment only."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.tests.stage import Stage


class Watch:
    """Follows objects of a stage's namespace for as long as the block lasts."""

    def __init__(self, stage: Stage, *what: str) -> None:
        """what: as for `kubectl get`."""
        target = stage.target
        self._command = [
            *(target.kubectl_path, f"--kubeconfig={target.kubeconfig}", f"--namespace={stage.namespace}"),
            *("get", *what, "--watch", "--output=json"),
        ]

    def __enter__(self) -> Self:
        self._output = tempfile.NamedTemporaryFile("wb")
        self._process = subprocess.Popen(self._command, stdout=self._output)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        self._output.close()

    def seen(self) -> list[dict[str, Any]]:
        """The objects that were shown so far, in order; an object once for each change."""
        text, found, decoder = Path(self._output.name).read_text().strip(), [], json.JSONDecoder()
        while text:
            try:
                shown, end = decoder.raw_decode(text)
            except json.JSONDecodeError:  # the last one is being written
                break
            found.append(shown)
            text = text[end:].lstrip()
        return found
