"""kube-proxy of a real node: the addresses of Services."""

from __future__ import annotations

import yaml

from e2e.cluster.health import is_healthy
from e2e.cluster.real.namespaces import Namespaces, Nested
from e2e.cluster.real.network import POD_RANGE, NodeAddress
from e2e.cluster.site import Site

HEALTH_PORT = 10256


def kube_proxy(site: Site, namespaces: Namespaces, address: NodeAddress) -> Nested:
    """kube-proxy in its iptables mode."""
    node = namespaces.holder.name
    configuration = namespaces.folder / "kube-proxy.yaml"
    content = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(site.user_kubeconfig("system:kube-proxy"))},
        "mode": "iptables",
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": node,
        "bindAddress": address.address,
        "healthzBindAddress": f"{address.address}:{HEALTH_PORT}",
        # These are the machine's, not the node's.
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    configuration.write_text(yaml.safe_dump(content))
    name, health = f"kube-proxy-{node}", f"http://{address.address}:{HEALTH_PORT}/healthz"
    command = namespaces.command(site.command("kube-proxy", [f"--config={configuration}"]))
    return Nested(name, command, site.log(name), lambda: is_healthy(health))
