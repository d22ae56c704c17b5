"""etcd and the Kubernetes programs: their flags, and how each shows that it is ready."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from e2e.cluster.certs import KeyPair
from e2e.cluster.health import is_healthy
from e2e.cluster.processes import Program
from e2e.cluster.site import ADMINISTRATORS, Site

SERVICE_RANGE = "10.96.0.0/16"
FIRST_SERVICE_ADDRESS = "10.96.0.1"  # the `kubernetes` Service; pods reach the API server by it
FRONT_PROXY = "front-proxy-client"


def etcd(site: Site) -> Program:
    """The data store. Without fsync: its data outlives a killed process, though not a power failure."""
    url, peer = site.etcd_url, f"http://127.0.0.1:{site.port('etcd-peer')}"
    flags = [
        f"--data-dir={site.directory / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    return _program(site, "etcd", flags, f"{url}/health")


def api_server(site: Site) -> Program:
    """The API server, with RBAC and the aggregation layer."""
    identity, ca = _api_server_identity(site), site.authority.files
    to_kubelets = site.authority.issue("kube-apiserver-kubelet-client", groups=[ADMINISTRATORS])
    service_accounts = site.service_accounts
    flags = [
        f"--etcd-servers={site.etcd_url}",
        f"--bind-address={site.address}",
        f"--advertise-address={site.address}",
        f"--secure-port={site.port('kube-apiserver')}",
        f"--tls-cert-file={identity.certificate}",
        f"--tls-private-key-file={identity.key}",
        f"--client-ca-file={ca.certificate}",
        f"--kubelet-client-certificate={to_kubelets.certificate}",
        f"--kubelet-client-key={to_kubelets.key}",
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        # It taints every new node as not ready, and the controller manager takes that off again at a few
        # nodes a second: minutes for a fleet. Our nodes are born Ready; others are tainted when they are not.
        "--disable-admission-plugins=TaintNodesByCondition",
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={service_accounts.certificate}",
        f"--service-account-signing-key-file={service_accounts.key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        *_aggregation_flags(site),
    ]
    if ip_address(site.address).is_loopback:
        # The `kubernetes` Service may not have a loopback endpoint; trying to write one fails every 10 s.
        flags.append("--endpoint-reconciler-type=none")
    command = site.command("kube-apiserver", flags)
    api = site.api()
    return Program("kube-apiserver", command, site.log("kube-apiserver"), lambda: api.answers("/readyz"))


def controller_manager(site: Site, hpa_sync_seconds: float) -> Program:
    """The controllers, each under its own service account, so that RBAC is as strict as on a real cluster."""
    ca = site.authority.files
    flags = [
        *_component_flags(site, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={site.service_accounts.key}",
        f"--root-ca-file={ca.certificate}",
        f"--cluster-signing-cert-file={ca.certificate}",
        f"--cluster-signing-key-file={ca.key}",
        f"--horizontal-pod-autoscaler-sync-period={hpa_sync_seconds}s",
    ]
    program = _program(site, "kube-controller-manager", flags, _health_url(site, "kube-controller-manager"))
    healthy, api = program.is_ready, site.api()
    # Pods are refused in a namespace until its service account exists, so healthy alone is too early.
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    program.is_ready = lambda: healthy() and api.answers(account)
    return program


def scheduler(site: Site) -> Program:
    """The scheduler."""
    flags = _component_flags(site, "kube-scheduler")
    return _program(site, "kube-scheduler", flags, _health_url(site, "kube-scheduler"))


def _program(site: Site, name: str, flags: Sequence[str], health_url: str) -> Program:
    return Program(name, site.command(name, flags), site.log(name), lambda: is_healthy(health_url))


def _api_server_identity(site: Site) -> KeyPair:
    hosts = [
        site.address,
        "127.0.0.1",
        "localhost",
        FIRST_SERVICE_ADDRESS,
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ]
    return site.authority.issue("kube-apiserver", hosts=hosts)


def _aggregation_flags(site: Site) -> list[str]:
    """What lets an APIService stand for a part of the API (see aggregation.py)."""
    authority = site.front_proxy_authority
    proxy = authority.issue(FRONT_PROXY)
    return [
        f"--requestheader-client-ca-file={authority.files.certificate}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={proxy.certificate}",
        f"--proxy-client-key-file={proxy.key}",
    ]


def _component_flags(site: Site, name: str) -> list[str]:
    kubeconfig = site.user_kubeconfig(f"system:{name}")
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.port(name)}",
        # There is one of each. An election would only delay every restart by a lease.
        "--leader-elect=false",
    ]


def _health_url(site: Site, name: str) -> str:
    return f"https://127.0.0.1:{site.port(name)}/healthz"
