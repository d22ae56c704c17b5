"""Puts vLLM for CPUs once onto this machine, in the cache, for the engine image's Python.

Nodes mount the folder read-only into containers (e2e/images/engine says where): an image with vLLM in it
would be copied four times on its way into a node, 6.5 GB each time.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
import tempfile
import time
from pathlib import Path

from e2e.images.buildah import buildah, cache_directory, run
from e2e.images.recipe import reference
from e2e.images.recipes import DEBIAN, ENGINE_MOUNT
from e2e.images.store import store

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
UV = "uv==0.13.9"
PLATFORM = "x86_64-manylinux_2_34"


def ensure_engine() -> Path:
    """The folder with vLLM's packages; made first where the cache does not hold it."""
    folder = _folder()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / "lock").open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _install(folder)
    return folder


def _folder() -> Path:
    """Compiled Python files depend on the image's Python, so what brings it is part of the name."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + f"{UV} {PLATFORM} {DEBIAN.tag}".encode())
    return cache_directory().parent / "engine" / digest.hexdigest()[:12]


def _install(folder: Path) -> None:
    began = time.monotonic()
    _show("installing vLLM for CPUs, 5.8 GB, into the cache ...")
    for other in folder.parent.iterdir():  # of other requirements, or of an installation that was killed
        if other.is_dir():
            shutil.rmtree(other)
    unfinished = folder.with_suffix(".unfinished")
    store(DEBIAN)
    container = buildah("from", "--pull=never", reference(DEBIAN))
    try:
        _download(unfinished, _python(container))
        _compile(unfinished, container)
    finally:
        buildah("rm", container)
    unfinished.rename(folder)
    _show(f"installed vLLM in {time.monotonic() - began:.0f} s")


def _python(container: str) -> str:
    """The version of the image's Python, as 3.11."""
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    return buildah("run", "--isolation=chroot", container, "--", "python3", "-c", version)


def _download(target: Path, python: str) -> None:
    with tempfile.TemporaryDirectory(prefix="bowsprit-uv-") as folder:
        run(sys.executable, "-m", "venv", folder)
        run(f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", UV)
        run(
            *("nice", f"{folder}/bin/uv", "pip", "install", "--quiet", "--no-config", "--no-cache"),
            *("--python-version", python, "--python-platform", PLATFORM, "--only-binary", ":all:"),
            *("--require-hashes", "--no-deps", "--requirement", str(REQUIREMENTS), "--target", str(target)),
        )


def _compile(target: Path, container: str) -> None:
    """Beforehand, because containers cannot write there: compiling at every start takes half a minute."""
    mount = f"--volume={target}:{ENGINE_MOUNT}"
    command = ("python3", "-m", "compileall", "-q", "-j", "0", ENGINE_MOUNT)
    # It reports files that no Python can compile (templates, tests of syntax errors) and goes on.
    buildah("run", "--isolation=chroot", mount, container, "--", "sh", "-c", f"{' '.join(command)} || true")


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
