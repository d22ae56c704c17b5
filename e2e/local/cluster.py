"""The local cluster as a whole."""

from __future__ import annotations

import shutil
from pathlib import Path

from e2e.cluster.real.cluster import RealCluster
from e2e.cluster.real.node import import_images
from e2e.images.buildah import cache_directory
from e2e.images.recipes import ENGINE_MOUNT
from e2e.local.materials import PROGRAMS, Materials
from e2e.local.release import Release

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


def release(materials: Materials) -> Release:
    """The operator in the cluster that runs."""
    return Release(directory() / "kubeconfig", materials)


def bring_up_to_date(materials: Materials) -> None:
    """Gives the cluster that runs the images and the operator of this work tree."""
    import_images(directory(), materials.images)
    release(materials).install()


class LocalCluster(RealCluster):
    """Two real nodes that say they had GPUs, and the operator."""

    program_sets = PROGRAMS

    def __init__(self, materials: Materials, directory: Path) -> None:
        self._materials = materials
        mounts = {ENGINE_MOUNT: materials.vllm}
        super().__init__(materials.pause, materials.images, mounts, directory)

    def _start_all(self) -> None:
        super()._start_all()
        for name in self.nodes:
            self.declare_gpus(name, product=PRODUCT, memory_mib=MEMORY_MIB, count=GPUS)
        Release(self.kubeconfig, self._materials).install()
