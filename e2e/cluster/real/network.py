"""How the real nodes, their pods and this machine reach each other.

A bridge on the host joins the nodes; every node routes the pods of the others by their node's address, and
the host routes pods and Services through the nodes. No packet is rewritten but by kube-proxy, inside the
nodes: the host's own firewall rules stay as they are.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BRIDGE = "bowsprit0"
HOST_ADDRESS = "10.64.0.1"
"""This machine, as nodes and pods reach it: the API server and CoreDNS listen here."""
POD_RANGE = "10.65.0.0/16"


@dataclass(frozen=True)
class NodeAddress:
    """The addresses of one node. `index` counts from 1."""

    index: int

    @property
    def address(self) -> str:
        return f"10.64.0.{1 + self.index}"

    @property
    def pods(self) -> str:
        """The range that its pods' addresses are taken from."""
        return f"10.65.{self.index}.0/24"

    @property
    def link(self) -> str:
        """The host's end of its cable."""
        return f"bowsprit0-{self.index}"


def create_bridge() -> None:
    """The host's side; it goes by `remove_bridge`, and all routes over it with it."""
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("address", "add", f"{HOST_ADDRESS}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")


def remove_bridge() -> None:
    """Takes the bridge away, if there is one."""
    if Path("/sys/class/net", BRIDGE).exists():
        _ip("link", "delete", BRIDGE)


def connect(node: NodeAddress, process: int) -> None:
    """Lays the cable from the bridge into the network namespace of a process."""
    peer = ("peer", "name", "eth0", "netns", str(process))
    _ip("link", "add", node.link, "type", "veth", *peer)
    _ip("link", "set", node.link, "master", BRIDGE, "up")
    inside = ("nsenter", "--target", str(process), "--net")
    for arguments in (
        ("address", "add", f"{node.address}/24", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", HOST_ADDRESS),
    ):
        _ip(*arguments, inside=inside)
    _ip("route", "add", node.pods, "via", node.address)


def connect_pods(node: NodeAddress, others: Sequence[NodeAddress], process: int) -> None:
    """Routes the pods of the other nodes inside the network namespace of a process."""
    inside = ("nsenter", "--target", str(process), "--net")
    for other in others:
        _ip("route", "replace", other.pods, "via", other.address, inside=inside)


def route_services(services: str, node: NodeAddress) -> None:
    """Lets this machine reach the addresses of Services, by the kube-proxy of a node."""
    _ip("route", "replace", services, "via", node.address)


def pod_network(node: NodeAddress) -> dict[str, Any]:
    """The CNI configuration of a node: a routed cable for each pod."""
    addresses = {
        "type": "host-local",
        "dataDir": "/run/pod-addresses",
        "ranges": [[{"subnet": node.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {
        "cniVersion": "0.4.0",
        "name": "bowsprit",
        "plugins": [
            {"type": "ptp", "ipam": addresses},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def write_pod_network(node: NodeAddress, directory: Path) -> Path:
    """Writes the CNI configuration; returns the folder that containerd is told."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "10-bowsprit.conflist").write_text(json.dumps(pod_network(node), indent=2))
    return directory


def _ip(*arguments: str, inside: Sequence[str] = ()) -> None:
    subprocess.run([*inside, "ip", *arguments], check=True, capture_output=True, text=True)
