"""Finished images, kept as archives in the cache.

An image's tag is the hash of what went into it: its folder, its build arguments and its bases. So an
unchanged image costs nothing, and a changed one is never mistaken for the one before.
"""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.images.buildah import buildah, cache_directory, is_stored, signature_policy
from e2e.images.recipe import Recipe, reference


@dataclass(frozen=True)
class Image:
    """An image in the cache."""

    reference: str
    archive: Path
    """In OCI's layout, as one tar file."""

    @property
    def repository(self) -> str:
        return self.reference.rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.reference.rpartition(":")[2]


def ensure_image(recipe: Recipe) -> Image:
    """The image, built first where the cache does not hold it."""
    image = Image(reference(recipe), cache_directory() / f"{recipe.name}_{recipe.tag}.tar")
    if not image.archive.exists():
        with build_lock():
            if not image.archive.exists():
                _build(recipe, image)
    return image


def store(recipe: Recipe) -> None:
    """Builds into buildah's storage."""
    with build_lock():
        _store(recipe)


def _build(recipe: Recipe, image: Image) -> None:
    began = time.monotonic()
    _store(recipe)
    unfinished = image.archive.with_suffix(".unfinished")
    target = f"oci-archive:{unfinished}:{image.reference}"
    buildah("push", "--quiet", signature_policy(), image.reference, target)
    for older in cache_directory().glob(f"{recipe.name}_*.tar"):
        older.unlink()
    unfinished.rename(image.archive)
    _show(f"built the image {recipe.name} in {time.monotonic() - began:.0f} s")


def _store(recipe: Recipe) -> None:
    """The bases first."""
    if is_stored(reference(recipe)):
        return
    for base in recipe.bases.values():
        _store(base)
    _show(f"building the image {recipe.name} ...")
    before = _containers()
    try:
        recipe.build(reference(recipe))
    finally:
        # buildah leaves stages without a step mounted; what others have mounted is theirs.
        for left in _containers() - before:
            buildah("rm", left)


def _containers() -> set[str]:
    return set(buildah("containers", "--quiet").split())


@contextmanager
def build_lock() -> Iterator[None]:
    """One build at a time: two would only take the processors from each other. What others mount under it is
    never taken for what a build has left."""
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
