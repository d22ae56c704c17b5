"""The operator beside the local cluster, with the rights that the manifests give it and no others."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from bowsprit.cluster import access
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.health import is_healthy
from e2e.cluster.processes import Program
from e2e.cluster.site import Site

NAME = "bowsprit"
RIGHTS = Path(__file__).parents[2] / "operator" / "rbac.yaml"


def operator(cluster: ControlPlane, site: Site, runtime_image: str) -> Program:
    """`bowsprit run` as the operator's ServiceAccount. The CRD must be there."""
    cluster.kubectl("apply", "--server-side", "--filename", str(RIGHTS))
    port = site.port(NAME)
    command = [
        *(sys.executable, "-m", "bowsprit.cli.main", "run"),
        f"--kubeconfig={_kubeconfig(cluster, site)}",
        f"--lease-namespace={access.NAMESPACE}",
        f"--runtime-image={runtime_image}",
        "--listen-host=127.0.0.1",
        f"--listen-port={port}",
    ]
    return Program(NAME, command, site.log(NAME), lambda: is_healthy(f"http://127.0.0.1:{port}/readyz"))


def _kubeconfig(cluster: ControlPlane, site: Site) -> Path:
    token = cluster.kubectl("-n", access.NAMESPACE, "create", "token", access.NAME, "--duration=24h")
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.strip()}
    path = site.directory / "operator-kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
