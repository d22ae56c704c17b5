"""The local cluster as a whole."""

from __future__ import annotations

import shutil
from pathlib import Path

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


def empty_directory() -> Path:
    """The same, with nothing left in it of the cluster before."""
    shutil.rmtree(directory(), ignore_errors=True)
    directory().mkdir(parents=True)
    return directory()


class LocalCluster(RealCluster):
    """Two real nodes that say they had GPUs, and the operator."""

    def __init__(self, materials: Materials, directory: Path) -> None:
        self._runtime = materials.runtime
        super().__init__(
            materials.pause,
            materials.images,
            {ENGINE_MOUNT: materials.vllm},
            directory,
            definitions=[crd_yaml()],
        )

    def _start_all(self) -> None:
        super()._start_all()
        for name in self.nodes:
            self.declare_gpus(name, product=PRODUCT, memory_mib=MEMORY_MIB, count=GPUS)
        self._add(operator.operator(self, self._site, self._runtime.reference))
        self.programs[operator.NAME].wait_ready(60)
