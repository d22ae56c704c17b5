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
MY_OPT = Containerfile(
    "my-opt", PRODUCT / "plugin-example" / "my-opt", only=("pyproject.toml", "src"), bases={"BASE": DEBIAN}
)
UNEVEN_LLAMA = Containerfile(
    "uneven-llama",
    PRODUCT / "plugin-example" / "uneven-llama",
    only=("pyproject.toml", "src"),
    bases={"BASE": DEBIAN},
)
OPERATOR = Containerfile(
    "operator",
    PRODUCT.parent,
    containerfile="images/operator/Containerfile",
    only=("LICENSE", "NOTICE", "README.md", "operator", "pyproject.toml", "requirements"),
    bases={"BASE": DEBIAN},
)
ENGINE = Containerfile("engine", HERE / "engine", bases={"BASE": DEBIAN})
