"""CoreDNS, beside the cluster instead of in it: the names of Services and of the ranks of a group."""

from __future__ import annotations

from e2e.cluster.health import is_healthy
from e2e.cluster.processes import Program
from e2e.cluster.real.kubelet import DOMAIN
from e2e.cluster.real.network import HOST_ADDRESS
from e2e.cluster.site import ADMINISTRATORS, Site

CONFIGURATION = """\
.:53 {{
    bind {address}
    errors
    ready {ready}
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
    }}
}}
"""


def coredns(site: Site) -> Program:
    """Listens where pods reach this machine, at the port that resolvers ask."""
    ready = f"127.0.0.1:{site.port('coredns')}"
    path = site.directory / "Corefile"
    path.write_text(
        CONFIGURATION.format(
            address=HOST_ADDRESS,
            ready=ready,
            domain=DOMAIN,
            kubeconfig=site.user_kubeconfig("coredns", ADMINISTRATORS),
        )
    )
    return Program(
        "coredns",
        site.command("coredns", [f"-conf={path}"]),
        site.log("coredns"),
        lambda: is_healthy(f"http://{ready}/ready"),
    )
