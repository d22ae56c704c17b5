"""What the local cluster is made of, built or fetched where the caches do not hold it, in plain sight."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.build import ensure_programs
from e2e.cluster.programs import HELM
from e2e.cluster.real.cluster import RealCluster
from e2e.cluster.real.packages import ensure_packages
from e2e.engine.install import ensure_engine
from e2e.images.recipes import ENGINE, MY_OPT, OPERATOR, PAUSE, RUNTIME, UNEVEN_LLAMA
from e2e.images.store import Image, ensure_image

PROGRAMS = (*RealCluster.program_sets, HELM)


@dataclass(frozen=True)
class Materials:
    """Images, and the folder with vLLM's packages."""

    pause: Image
    operator: Image
    runtime: Image
    engine: Image
    my_opt: Image
    uneven_llama: Image
    vllm: Path

    @property
    def images(self) -> list[Image]:
        """What the nodes are given besides `pause`."""
        return [self.operator, self.runtime, self.engine, self.my_opt, self.uneven_llama]


def ensure_materials() -> Materials:
    """Everything; the first time this takes a while."""
    ensure_packages()
    ensure_programs(PROGRAMS)
    return Materials(
        pause=ensure_image(PAUSE),
        operator=ensure_image(OPERATOR),
        runtime=ensure_image(RUNTIME),
        engine=ensure_image(ENGINE),
        my_opt=ensure_image(MY_OPT),
        uneven_llama=ensure_image(UNEVEN_LLAMA),
        vllm=ensure_engine(),
    )
