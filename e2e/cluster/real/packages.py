"""The Debian packages that real nodes and the building of images need, installed where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.cluster.background import NotPossible

PACKAGES: Mapping[str, str] = {
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "/bin/busybox": "busybox-static",
    "buildah": "buildah",
    "containerd": "containerd",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "runc": "runc",
}
"""Program or file -> the package that brings it. What is there already, from whatever source, is used."""
APT = ("apt-get", "--quiet", "--yes", "--no-install-recommends")


def ensure_packages() -> None:
    """Installs what is missing, and says what. Raises NotPossible where it may not or cannot."""
    require_root()
    missing = _missing()
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise NotPossible(
            f"Real nodes need the Debian packages {', '.join(missing)}, and there is no apt-get here. "
            f"Install what brings {', '.join(path for path in PACKAGES if PACKAGES[path] in missing)}."
        )
    print(f"installing Debian packages: {' '.join(missing)}", file=sys.stderr, flush=True)
    _apt("update")
    _apt("install", *missing)


def require_root() -> None:
    """Raises NotPossible for anybody but root."""
    if os.geteuid() != 0:
        raise NotPossible(
            "Real nodes mount file systems and make network namespaces and control groups: only root may. "
            "Run this as root, or name a cluster of yours: make e2e KUBECONFIG=…"
        )


def _missing() -> list[str]:
    return sorted({package for path, package in PACKAGES.items() if not _there(path)})


def _there(path: str) -> bool:
    return Path(path).exists() if path.startswith("/") else shutil.which(path) is not None


def _apt(*arguments: str) -> None:
    command: Sequence[str] = ("nice", *APT, *arguments)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotPossible(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
