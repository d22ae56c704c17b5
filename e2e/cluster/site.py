"""Where one control plane lives: its directory, ports, certificates and built programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.api import Api, write_kubeconfig
from e2e.cluster.build import Programs
from e2e.cluster.certs import Authority, KeyPair
from e2e.cluster.ports import PortBlock

ADMINISTRATORS = "system:masters"


@dataclass(frozen=True)
class Site:
    """What every program of one control plane is told about the others."""

    directory: Path
    programs: Programs
    ports: PortBlock
    address: str
    """Where the API server listens. 127.0.0.1, or an address that pods on a real node can reach."""
    extra_flags: Mapping[str, Sequence[str]]
    """Program name -> flags of the caller's, appended to the program's own."""

    def command(self, program: str, flags: Sequence[str]) -> list[str]:
        """What starts a program."""
        return [self.programs.binary(program), *flags, *self.extra_flags.get(program, ())]

    def port(self, purpose: str) -> int:
        """The port that this control plane keeps for a purpose, the same after every restart of a program."""
        return self.ports.port(PORTS.index(purpose))

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.port('etcd')}"

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.port('kube-apiserver')}"

    @property
    def authority(self) -> Authority:
        """Vouches for every server and user of this control plane."""
        return Authority(self.directory / "pki", "ca")

    @property
    def front_proxy_authority(self) -> Authority:
        """Vouches for the API server towards aggregated APIs, and for nothing else."""
        return Authority(self.directory / "pki", "front-proxy-ca")

    @property
    def service_accounts(self) -> KeyPair:
        """Signs service account tokens. Kept like an authority, because stored tokens must stay valid."""
        return Authority(self.directory / "pki", "service-accounts").files

    @property
    def admin_kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def log(self, program: str) -> Path:
        folder = self.directory / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{program}.log"

    def user_kubeconfig(self, user: str, *groups: str) -> Path:
        """A kubeconfig of its own for a program, so that RBAC and audit tell the programs apart."""
        path = self.directory / "pki" / f"{user.replace(':', '-')}.kubeconfig"
        return write_kubeconfig(
            path, self.server, self.authority.files.certificate, self._user(user, *groups)
        )

    def write_admin_kubeconfig(self) -> None:
        admin = self._user("bowsprit-admin", ADMINISTRATORS)
        write_kubeconfig(self.admin_kubeconfig, self.server, self.authority.files.certificate, admin)

    def api(self) -> Api:
        """The API server, as the administrator sees it."""
        return Api(self.admin_kubeconfig)

    def _user(self, name: str, *groups: str) -> KeyPair:
        return self.authority.issue(name, groups=groups)


PORTS = (
    "etcd",
    "etcd-peer",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "lws-webhook",
    "lws-health",
    "bowsprit",
    "coredns",
    "flux-artifacts",
    "source-controller",
    "kustomize-controller",
)
