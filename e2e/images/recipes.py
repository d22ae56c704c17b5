"""The images that the end-to-end tests use."""

from __future__ import annotations

from pathlib import Path

from e2e.images.debian import Debian
from e2e.images.recipe import Containerfile

HERE = Path(__file__).parent
PRODUCT = HERE.parents[1] / "images"

ENGINE_MOUNT = "/opt/engine"
"""Where the engine image looks for vLLM's packages."""

PAUSE = Containerfile("pause", HERE / "pause", files={"busybox": Path("/bin/busybox")})
DEBIAN = Debian()
RUNTIME = Containerfile("runtime", PRODUCT / "runtime", only=("src",), bases={"BUSYBOX": PAUSE})
ENGINE = Containerfile("engine", HERE / "engine", bases={"BASE": DEBIAN})
