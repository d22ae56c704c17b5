"""Flux beside the cluster: its source-controller and kustomize-controller, as they are released.

    with FluxCluster() as cluster:
        cluster.kubectl("apply", "-f", "models.yaml")   # a GitRepository and a Kustomization

The part of Flux that brings a Git repository into a cluster; nothing that sends notifications or knows Helm.
"""

from __future__ import annotations

from collections.abc import Sequence

from e2e.cluster.control_plane import READY_SECONDS, ControlPlane
from e2e.cluster.health import is_healthy
from e2e.cluster.processes import Program
from e2e.cluster.programs import CONTROL_PLANE, FLUX, ProgramSet
from e2e.cluster.site import ADMINISTRATORS, Site


class FluxCluster(ControlPlane):
    """A control plane with Flux."""

    program_sets: Sequence[ProgramSet] = (*CONTROL_PLANE, *FLUX)

    def _start_all(self) -> None:
        super()._start_all()
        self.kubectl("create", "namespace", "flux-system")
        for program in (source_controller(self._site), kustomize_controller(self._site)):
            self._add(program)
            program.wait_ready(READY_SECONDS)

    def _first_definitions(self) -> list[str]:
        shipped = [
            self._site.programs.manifest(program_set, path).read_text()
            for program_set in FLUX
            for path in program_set.manifests
        ]
        return [*super()._first_definitions(), *shipped]


def source_controller(site: Site) -> Program:
    """Fetches repositories, and serves what it has fetched."""
    storage = site.directory / "flux-artifacts"
    storage.mkdir(exist_ok=True)
    address = f"127.0.0.1:{site.port('flux-artifacts')}"
    flags = [f"--storage-path={storage}", f"--storage-addr={address}", f"--storage-adv-addr={address}"]
    return _controller(site, "source-controller", flags)


def kustomize_controller(site: Site) -> Program:
    """Applies what was fetched, waits until it is ready, and prunes what is no more."""
    return _controller(site, "kustomize-controller", ["--no-remote-bases"])


def _controller(site: Site, name: str, flags: Sequence[str]) -> Program:
    health = f"127.0.0.1:{site.port(name)}"
    scratch = site.directory / name
    scratch.mkdir(exist_ok=True)
    environment = {
        "KUBECONFIG": str(site.user_kubeconfig(name, ADMINISTRATORS)),
        "RUNTIME_NAMESPACE": "flux-system",
        "TMPDIR": str(scratch),
    }
    common = [f"--health-addr={health}", "--metrics-addr=0", "--log-encoding=json"]
    return Program(
        name,
        site.command(name, [*common, *flags]),
        site.log(name),
        lambda: is_healthy(f"http://{health}/readyz"),
        environment,
    )
