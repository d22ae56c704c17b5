"""The name of a ModelDeployment within the cluster."""

from __future__ import annotations

from typing import NamedTuple


class ModelKey(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
