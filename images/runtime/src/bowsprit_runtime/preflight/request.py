"""BOWSPRIT_PREFLIGHT: what the operator wants judged (decision 0012)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

ENV = "BOWSPRIT_PREFLIGHT"
USUAL_TENSOR_SIZES = (1, 2, 4, 8)
_SECONDS = 600.0


@dataclass(frozen=True)
class Request:
    arguments: tuple[str, ...] = ()
    """What `vllm serve` will get, without the parallel layout."""
    tensors: tuple[int, ...] = USUAL_TENSOR_SIZES
    """Tensor parallel sizes to measure at."""
    pipeline: int | None = None
    """Pipeline stages that the spec fixes."""
    uneven_tensor_parallel: bool = False
    """The plugin's promise that the size need not divide the heads."""
    seconds: float = _SECONDS
    """Time for the whole of preflight."""
    memory: int | None = None
    """Bytes; None leaves it at what limits the container."""

    @property
    def tensors_are_fixed(self) -> bool:
        """Whether the spec names the size, which then has to work; several are there to choose from."""
        return len(self.tensors) == 1


def request_of(environ: Mapping[str, str]) -> Request:
    wanted = json.loads(environ.get(ENV) or "{}")
    return Request(
        arguments=tuple(wanted.get("arguments") or ()),
        tensors=tuple(sorted(wanted.get("tensors") or USUAL_TENSOR_SIZES)),
        pipeline=wanted.get("pipeline"),
        uneven_tensor_parallel=bool(wanted.get("unevenTensorParallel")),
        seconds=float(wanted.get("timeLimitSeconds") or _SECONDS),
        memory=wanted.get("memoryLimitBytes"),
    )
