"""A Kubernetes control plane of real programs on this machine.

    with ControlPlane() as cluster:
        node = gpu_node("a", product="NVIDIA-A100-SXM4-80GB", memory_mib=81920, count=4)
        create_nodes(cluster.kubeconfig, [node])
        cluster.kubectl("apply", "-f", "model.yaml")

Starts etcd, the API server, the controller manager, the scheduler, KWOK and the LeaderWorkerSet manager.
Each may be stopped, killed and started again, for tests of what a fault does; ports, data and identities
stay.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from e2e.cluster import aggregation, kubernetes, kwok, lws
from e2e.cluster.api import Api
from e2e.cluster.build import ensure_programs
from e2e.cluster.ports import PortBlock
from e2e.cluster.processes import ProcessGroup, Program
from e2e.cluster.programs import CONTROL_PLANE, ProgramSet
from e2e.cluster.site import Site
from e2e.cluster.waiting import wait_until

# Eight seconds on an idle machine; on one that is busy with a build, many more.
READY_SECONDS = 120.0


class KubectlFailed(Exception):
    """kubectl ended with an error; the message holds the command and kubectl's own words."""


class ControlPlane:
    """One control plane, from `start` to `stop`; as a context manager, from `with` to the block's end."""

    program_sets: Sequence[ProgramSet] = CONTROL_PLANE

    def __init__(
        self,
        directory: Path | None = None,
        *,
        lws: bool = True,
        definitions: Sequence[str] = (),
        address: str = "127.0.0.1",
        hpa_sync_seconds: float = 15.0,
        extra_flags: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """
        directory: for data and logs; by default a temporary one that goes when the control plane stops.
        lws: whether LeaderWorkerSet is installed from the start (see `install_lws`).
        definitions: CustomResourceDefinitions in YAML that are there from the start. The garbage collector
            looks for new kinds every 30 s only, and until then what their objects own outlives them.
        address: where the API server listens; give one that pods can reach if there are real nodes.
        hpa_sync_seconds: how often autoscalers look at their metrics.
        extra_flags: program name -> flags appended to its own: {"kube-scheduler": ["--kube-api-qps=500"]}.
        """
        self._keep_directory = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="bowsprit-cluster-"))
        self._lws = lws
        self._definitions = definitions
        self._address = address
        self._hpa_sync_seconds = hpa_sync_seconds
        self._extra_flags = extra_flags or {}
        self.programs: dict[str, Program] = {}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig. It holds its certificates, so it may be copied."""
        return self._site.admin_kubeconfig

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._site.server

    def start(self) -> Self:
        """Starts everything. If that fails or is interrupted, nothing stays running; logs are kept."""
        programs = ensure_programs(self.program_sets)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._site = Site(self.directory.resolve(), programs, PortBlock(), self._address, self._extra_flags)
        self._group = ProcessGroup()
        try:
            self._start_all()
        except BaseException:
            self._abandon()
            raise
        return self

    def stop(self) -> None:
        """Stops everything. A temporary directory goes too."""
        # The data store last, or everybody else spends their last second complaining about it.
        for name in reversed(self.programs):
            if name not in ("etcd", "kube-apiserver"):
                self.programs[name].terminate()
        for name in reversed(self.programs):
            self.stop_program(name)
        self._abandon()
        if not self._keep_directory:
            shutil.rmtree(self.directory)

    def start_program(self, name: str) -> None:
        """Starts a stopped or killed program again, on its old ports and data; returns when it is ready."""
        self.programs[name].launch(self._group)
        self.programs[name].wait_ready(READY_SECONDS)

    def stop_program(self, name: str) -> None:
        """Stops a program as its manager would: SIGTERM, and SIGKILL if that does not end it."""
        self.programs[name].terminate()
        self.programs[name].wait_ended()

    def kill_program(self, name: str) -> None:
        """Ends a program as a crash would: SIGKILL."""
        self.programs[name].kill()

    def install_lws(self) -> None:
        """Installs LeaderWorkerSet: its CRD, its manager, then its webhooks. Returns when it is served."""
        self.install_definition(lws.crd(self._site).read_text())
        self._start_lws()

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """kubectl's output. An error is an exception with kubectl's own words."""
        command = self.kubectl_command(*arguments)
        done = subprocess.run(command, input=input, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def kubectl_command(self, *arguments: str) -> list[str]:
        """The command line of a kubectl call, for those that run on in the background (watches)."""
        return [str(self._site.programs.binary("kubectl")), f"--kubeconfig={self.kubeconfig}", *arguments]

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """Applies manifests server-side."""
        text = yaml.safe_dump_all([dict(manifest) for manifest in manifests])
        self.kubectl("apply", "--server-side", "-f", "-", input=text)

    def install_definition(self, crd: str) -> None:
        """Applies a CustomResourceDefinition in YAML; returns when its objects can be read and written."""
        self.kubectl("apply", "--server-side", "-f", "-", input=crd)
        spec = yaml.safe_load(crd)["spec"]
        collection = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        api = self.api()
        # Not `kubectl wait`: it fails on a definition so new that it has no conditions.
        wait_until(f"{collection} to be served", lambda: api.answers(collection), READY_SECONDS)

    def api(self) -> Api:
        """The API server, for what is too much or too often for kubectl."""
        return self._site.api()

    def serving_context(self, group: str) -> ssl.SSLContext:
        """What an HTTPS server needs to be believed as the server of an API group; see aggregation.py."""
        return aggregation.serving_context(self._site, group)

    def register_api(self, group: str, version: str, port: int) -> None:
        """Makes the API server pass a group and version on to 127.0.0.1:port; returns when it does."""
        self.apply(*aggregation.registration(self._site, group, version, port))
        timeout = f"--timeout={READY_SECONDS:.0f}s"
        self.kubectl("wait", "--for=condition=Available", f"apiservice/{version}.{group}", timeout)

    def _start_all(self) -> None:
        self._site.write_admin_kubeconfig()
        for program in (kubernetes.etcd(self._site), kubernetes.api_server(self._site)):
            self._add(program)
            self.start_program(program.name)
        for definition in self._first_definitions():
            self.install_definition(definition)
        self._add(kubernetes.controller_manager(self._site, self._hpa_sync_seconds))
        self._add(kubernetes.scheduler(self._site))
        self.kubectl("apply", "--server-side", *(f"--filename={path}" for path in kwok.stages(self._site)))
        self._add(kwok.kwok(self._site))
        if self._lws:
            self._start_lws()
        for program in self.programs.values():
            program.wait_ready(READY_SECONDS)

    def _first_definitions(self) -> list[str]:
        """Those that the garbage collector, which starts with the controller manager, must know."""
        ours = [kwok.stage_crd(self._site), *([lws.crd(self._site)] if self._lws else [])]
        return [*(path.read_text() for path in ours), *self._definitions]

    def _start_lws(self) -> None:
        self._add(lws.lws_manager(self._site))
        self.start_program("lws-manager")
        self.apply(*lws.webhooks(self._site))

    def _add(self, program: Program) -> None:
        """Launches a program without waiting: those that do not need each other start at the same time."""
        self.programs[program.name] = program
        program.launch(self._group)

    def _abandon(self) -> None:
        self._group.kill()
        for program in self.programs.values():
            program.wait_ended()
        self._site.ports.release()
