"""The kubelet of a real node."""

from __future__ import annotations

from typing import Any

import yaml

from e2e.cluster.nodes import ready_nodes
from e2e.cluster.real import cgroups
from e2e.cluster.real.containerd import SOCKET
from e2e.cluster.real.namespaces import Namespaces, Nested
from e2e.cluster.real.network import HOST_ADDRESS, NodeAddress
from e2e.cluster.site import Site

NODES = "system:nodes"
DOMAIN = "cluster.local"


def kubelet(site: Site, namespaces: Namespaces, address: NodeAddress) -> Nested:
    """The kubelet, under its node's own identity. It is ready when its node is."""
    node = namespaces.holder.name
    configuration = namespaces.folder / "kubelet.yaml"
    configuration.write_text(yaml.safe_dump(_configuration(site, node)))
    flags = [
        f"--config={configuration}",
        f"--kubeconfig={site.user_kubeconfig(f'system:node:{node}', NODES)}",
        f"--hostname-override={node}",
        f"--node-ip={address.address}",
    ]
    name, api = f"kubelet-{node}", site.api()
    command = namespaces.command(site.command("kubelet", flags))
    return Nested(name, command, site.log(name), lambda: node in ready_nodes(api))


def _configuration(site: Site, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(site.authority.files.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroups.kubelet_root(node),
        "failSwapOn": False,
        "clusterDNS": [HOST_ADDRESS],
        "clusterDomain": DOMAIN,
        "resolvConf": "",  # pods know the cluster's names and no others
        # Images are imported, so what the kubelet removed nobody would bring back.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # The disk is shared with whatever else lives on this machine.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }
