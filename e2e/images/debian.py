"""The base of the images: this machine's Debian (or Ubuntu), as small as debootstrap makes it, and Python."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.images.buildah import ImageFailed, buildah, run
from e2e.images.recipe import Recipe

# A container needs neither manuals nor a package manager's lists.
LEFT_OUT = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/cache",
    "var/lib/apt",
)


@dataclass(frozen=True)
class Debian:
    """The image."""

    name: str = "debian"
    packages: tuple[str, ...] = ("ca-certificates", "python3", "python3-pip", "python3-venv")
    bases: Mapping[str, Recipe] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        digest = hashlib.sha256(repr((_codename(), self.packages, LEFT_OUT)).encode())
        return f"{_codename()}-{digest.hexdigest()[:12]}"

    def build(self, reference: str) -> None:
        container = buildah("from", "scratch")
        try:
            root = Path(buildah("mount", container))
            include = f"--include={','.join(self.packages)}"
            run("nice", "debootstrap", "--variant=minbase", include, _codename(), str(root), _mirror())
            for each in LEFT_OUT:
                shutil.rmtree(root / each)
                (root / each).mkdir()
            buildah(
                "config", "--env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container
            )
            buildah("commit", "--quiet", container, reference)
        finally:
            buildah("rm", container)


def _codename() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    return fields["VERSION_CODENAME"].strip('"')


def _mirror() -> str:
    """Where this machine's own apt gets the packages of this release."""
    targets = run(
        "apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"
    )
    for line in targets.splitlines():
        codename, component, address = line.split(" ", 2)
        if (codename, component) == (_codename(), "main"):
            return address
    raise ImageFailed(f"apt knows no mirror with {_codename()} main; see apt-get indextargets")
