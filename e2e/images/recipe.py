"""What images are made from: a folder with a Containerfile."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from e2e.images.buildah import buildah, signature_policy

REPOSITORY = "localhost/bowsprit"
# chroot: RUN needs no container runtime. A fixed time: the same content is the same image, by digest too.
# layers: what a change does not touch is taken from the build before.
BUILD = ("--quiet", "--isolation=chroot", "--pull=never", "--timestamp=0", "--layers")
NO_CONTENT = ("__pycache__", ".egg-info")
"""How the names of folders end that Python leaves in a work tree."""


CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PIP_CONFIGURATION = Path("/etc/pip.conf")


class Recipe(Protocol):
    """How one image is made."""

    @property
    def name(self) -> str: ...

    @property
    def tag(self) -> str:
        """The hash of all that goes in."""
        ...

    @property
    def bases(self) -> Mapping[str, Recipe]:
        """Build argument -> the image whose reference it gets."""
        ...

    def build(self, reference: str) -> None:
        """Builds the image into buildah's storage, in which its bases are."""
        ...


def reference(recipe: Recipe) -> str:
    """The image's name and tag."""
    return f"{REPOSITORY}/{recipe.name}:{recipe.tag}"


@dataclass(frozen=True)
class Containerfile:
    """An image from a folder that holds a Containerfile."""

    name: str
    context: Path
    containerfile: str = "Containerfile"
    """Its path in the folder."""
    only: Sequence[str] = ("",)
    """Files and folders of the context that the build needs besides the Containerfile; by default all."""
    bases: Mapping[str, Recipe] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Further build arguments."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Path in the context -> a file of this machine that is put there."""

    @property
    def tag(self) -> str:
        digest = hashlib.sha256(repr((BUILD, self.containerfile, sorted(self.arguments.items()))).encode())
        for argument, base in sorted(self.bases.items()):
            digest.update(f"{argument}={reference(base)}".encode())
        for name, path in self._content():
            digest.update(f"{name} {os.access(path, os.X_OK)}\n".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:12]

    def build(self, reference: str) -> None:
        arguments = {**self.arguments, **{name: _reference(base) for name, base in self.bases.items()}}
        with tempfile.TemporaryDirectory(prefix="bowsprit-image-") as folder:
            context = Path(folder, "context")
            for name, path in self._content():
                (context / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, context / name)
            buildah(
                "build",
                *BUILD,
                signature_policy(),
                *_this_machines_access(Path(folder)),
                *(f"--build-arg={name}={value}" for name, value in arguments.items()),
                f"--file={context / self.containerfile}",
                f"--tag={reference}",
                str(context),
            )

    def _content(self) -> Iterator[tuple[str, Path]]:
        for each in (self.containerfile, *self.only):
            start = self.context / each
            for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
                if path.is_file() and not any(part.endswith(NO_CONTENT) for part in path.parts):
                    yield str(path.relative_to(self.context)), path
        yield from sorted(self.files.items())


def _this_machines_access(folder: Path) -> Iterator[str]:
    """How this machine reaches a package index, for builds that ask one; none of it stays in an image.

    folder: for files that are handed over.
    """
    if CERTIFICATES.exists():
        yield f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"
    configuration = PIP_CONFIGURATION
    if "PIP_INDEX_URL" in os.environ:
        configuration = folder / "pip.conf"
        configuration.write_text(f"[global]\nindex-url = {os.environ['PIP_INDEX_URL']}\n")
    if configuration.exists():
        yield f"--secret=id=pip.conf,src={configuration}"


_reference = reference
