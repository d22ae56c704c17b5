"""What the local cluster is made of, built or fetched where the caches do not hold it, in plain sight."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.build import ensure_programs
from e2e.cluster.real.cluster import RealCluster
from e2e.cluster.real.packages import ensure_packages
from e2e.engine.install import ensure_engine
from e2e.images.recipes import ENGINE, MY_OPT, PAUSE, RUNTIME, UNEVEN_LLAMA
from e2e.images.store import Image, ensure_image


@dataclass(frozen=True)
class Materials:
    """Images, and the folder with vLLM's packages."""

    pause: Image
    engine: Image
    runtime: Image
    my_opt: Image
    uneven_llama: Image
    vllm: Path

    @property
    def images(self) -> list[Image]:
        """What the nodes are given besides `pause`."""
        return [self.engine, self.runtime, self.my_opt, self.uneven_llama]


def ensure_materials() -> Materials:
    """Everything; the first time this takes a while."""
    ensure_packages()
    ensure_programs(RealCluster.program_sets)
    return Materials(
        pause=ensure_image(PAUSE),
        engine=ensure_image(ENGINE),
        runtime=ensure_image(RUNTIME),
        my_opt=ensure_image(MY_OPT),
        uneven_llama=ensure_image(UNEVEN_LLAMA),
        vllm=ensure_engine(),
    )
