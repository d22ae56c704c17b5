"""buildah, with its storage in the cache: no daemon, and nothing in the machine's own image storage."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# Nothing is pulled here, so there are no signatures to check.
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'


class ImageFailed(Exception):
    """An image could not be built; the message holds the tool's own words."""


def cache_directory() -> Path:
    """Where images are kept: outside the work tree, so a fresh clone finds them."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bowsprit" / "images"


def buildah(command: str, *arguments: str) -> str:
    """Runs one of buildah's commands; returns what it prints."""
    return run(*_buildah(command, *arguments))


def is_stored(reference: str) -> bool:
    """Whether the storage holds an image."""
    command = _buildah("inspect", "--type=image", reference)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def run(*command: str) -> str:
    """Runs a command that builds; an error is an exception with the command's own words."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ImageFailed(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()[-4000:]}")
    return done.stdout.strip()


def _buildah(command: str, *arguments: str) -> list[str]:
    cache = cache_directory()
    storage = ("--root", str(cache / "storage"), "--runroot", str(cache / "running"))
    return ["nice", "buildah", *storage, "--storage-driver", "overlay", command, *arguments]


def signature_policy() -> str:
    """The option of those commands that ask for a policy: a machine without container tools has none."""
    policy = cache_directory() / "policy.json"
    policy.write_text(POLICY)
    return f"--signature-policy={policy}"
