"""The demo's cluster: a control plane with the three nodes of the example inventory and the operator in it.

The operator is one program more of the control plane, so it starts, stops and dies with the others.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Self

import yaml

from bowsprit.api.crd import crd_yaml
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.health import is_healthy
from e2e.cluster.nodes import as_fake, create_nodes
from e2e.cluster.processes import Program
from e2e.cluster.site import Site

ROOT = Path(__file__).parents[2]
EXAMPLES = "examples/twelve-gpus"
INVENTORY = "examples/inventories/three-a100-nodes.yaml"
OPERATOR = "bowsprit"


class OperatedCluster(ControlPlane):
    """A control plane with nodes, the CRD and a running operator."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, definitions=[crd_yaml()])

    def start(self) -> Self:
        super().start()
        try:
            self._operate()
        except BaseException:
            self._abandon()
            raise
        return self

    def _operate(self) -> None:
        create_nodes(self.kubeconfig, inventory_nodes())
        self._add(_operator(self._site))
        self.start_program(OPERATOR)


def inventory_nodes() -> list[dict[str, Any]]:
    """The nodes of the inventory that the README plans with, played by KWOK."""
    objects = yaml.safe_load((ROOT / INVENTORY).read_text())["items"]
    return [as_fake(each) for each in objects if each["kind"] == "Node"]


def operator_log(kubeconfig: Path) -> Path:
    """Where the operator beside this kubeconfig writes."""
    return kubeconfig.parent / "logs" / f"{OPERATOR}.log"


def _operator(site: Site) -> Program:
    port = site.port(OPERATOR)
    command = [
        *(sys.executable, "-m", "bowsprit.cli.main", "run"),
        f"--kubeconfig={site.admin_kubeconfig}",
        "--listen-host=127.0.0.1",
        f"--listen-port={port}",
    ]
    return Program(
        OPERATOR, command, site.log(OPERATOR), lambda: is_healthy(f"http://127.0.0.1:{port}/readyz")
    )
