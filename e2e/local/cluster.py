"""The local cluster as a whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self

from bowsprit.api.crd import crd_yaml
from e2e.cluster.real.cluster import RealCluster
from e2e.images.buildah import cache_directory
from e2e.images.recipes import ENGINE_MOUNT
from e2e.local import operator
from e2e.local.materials import Materials

PRODUCT, MEMORY_MIB = "NVIDIA-A100-80GB-PCIe", 81920
"""What the GPUs are called that are not there: the placement needs a known type, vLLM runs on CPUs."""
GPUS = 1


def directory() -> Path:
    """Where it has its data and logs, which stay there until the next start."""
    return cache_directory().parent / "e2e"


class LocalCluster(RealCluster):
    """Two real nodes that say they had GPUs, and the operator."""

    def __init__(self, materials: Materials, directory: Path) -> None:
        self.materials = materials
        super().__init__(
            materials.pause,
            materials.images,
            {ENGINE_MOUNT: materials.vllm},
            directory,
            definitions=[crd_yaml()],
        )

    def start(self) -> Self:
        shutil.rmtree(self.directory, ignore_errors=True)
        return super().start()

    def _start_all(self) -> None:
        super()._start_all()
        for name in self.nodes:
            self.declare_gpus(name, product=PRODUCT, memory_mib=MEMORY_MIB, count=GPUS)
        self._add(operator.operator(self, self._site))
        self.programs[operator.NAME].wait_ready(60)
