"""A stage for integration tests: GPU nodes, models and the operator as a process, on the session's control
plane.

Every test has its own namespace, nodes and operator, and everything is cleared away afterwards. On the way it
is checked that the operator never writes to a ModelDeployment outside its status.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bowsprit.cluster import access
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.nodes import create_nodes, gpu_node
from e2e.cluster.waiting import wait_until
from tests.integration.referee import gpus_of
from tests.models import LLAMA_8B

PCIE = "NVIDIA-A100-80GB-PCIe"
SXM = "NVIDIA-A100-SXM4-80GB"
MDEP = "/apis/bowsprit.dev/v1alpha1/namespaces/{}/modeldeployments"

Json = dict[str, Any]


class OperatorProcess:
    """`bowsprit run` against the control plane."""

    def __init__(self, kubeconfig: Path, log: Path, identity: str, namespace: str, *options: str) -> None:
        self.log = log
        self.lease = namespace
        """Name of the Lease that it competes for."""
        self._command = [
            sys.executable,
            "-m",
            "bowsprit.cli.main",
            "run",
            f"--kubeconfig={kubeconfig}",
            f"--identity={identity}",
            f"--lease-namespace={access.NAMESPACE}",
            f"--lease-name={namespace}",
            "--listen-host=127.0.0.1",
            "--listen-port=0",
            *options,
        ]
        self.environment: Mapping[str, str] = os.environ
        self._process: subprocess.Popen[bytes] | None = None
        self._begins = 0
        """Where the running process begins in the log."""

    def start(self) -> OperatorProcess:
        with self.log.open("ab") as stream:
            self._begins = stream.tell()
            self._process = subprocess.Popen(
                self._command, stderr=stream, stdout=stream, env=dict(self.environment)
            )
        return self

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return self._signal(signal.SIGTERM)

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ended(self, seconds: float = 30.0) -> int:
        """Waits until the process ends by itself; returns the exit code."""
        assert self._process is not None
        return self._process.wait(timeout=seconds)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def port(self) -> int:
        """Of /metrics, /healthz and /readyz; waits for the start."""
        wait_until("the operator to listen", lambda: self._started() is not None, 30)
        return int((self._started() or {})["port"])

    def _started(self) -> Json | None:
        """What the running process has said of its start."""
        text = self.log.read_bytes()[self._begins :].decode()
        lines = [
            json.loads(line)
            for line in text.splitlines(keepends=True)
            if line.startswith("{") and line.endswith("\n")
        ]
        return next((line for line in lines if line.get("event") == "operator.started"), None)

    def _signal(self, signum: int) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(signum)
        code = self._process.wait(timeout=30)
        self._process = None
        return code


class Arena:
    """What a test acts on."""

    def __init__(self, control_plane: ControlPlane, namespace: str, directory: Path) -> None:
        self.cluster = control_plane
        self.namespace = namespace
        self.api = control_plane.api()
        self._directory = directory
        self._nodes: list[str] = []
        self._operators: list[OperatorProcess] = []
        self.logs: list[Path] = []
        """Further logs that a failure is to show."""

    def nodes(self, count: int, gpus: int = 4, product: str = PCIE, **more: Any) -> list[str]:
        """Creates fake GPU nodes that only this test's models use; returns their names."""
        names = self.new_names(count)
        self._create(names, gpus, product, more)
        return names

    def restore_node(self, name: str, gpus: int = 4, product: str = PCIE) -> None:
        """A deleted node comes back under its name."""
        self._create([name], gpus, product, {})

    def _create(self, names: Sequence[str], gpus: int, product: str, more: Json) -> None:
        labels = {"arena": self.namespace, **more.pop("labels", {})}
        create_nodes(
            self.cluster.kubeconfig,
            [
                gpu_node(name, product=product, memory_mib=81920, count=gpus, labels=labels, **more)
                for name in names
            ],
        )

    def new_names(self, count: int) -> list[str]:
        """Names for further nodes; the arena deletes the nodes."""
        names = [f"{self.namespace}-{len(self._nodes) + index}" for index in range(count)]
        self._nodes += names
        return names

    def delete_node(self, name: str) -> None:
        self.cluster.kubectl("delete", "node", name, "--wait=false")

    def operator(self, identity: str = "operator-a", *options: str) -> OperatorProcess:
        """Starts an operator; the arena ends it."""
        kubeconfig = operator_kubeconfig(self.cluster, self._directory)
        log = self._directory / f"{identity}.log"
        operator = OperatorProcess(kubeconfig, log, identity, self.namespace, *options)
        self._operators.append(operator)
        return operator.start()

    def model(self, name: str, *, config: Mapping[str, Any] | str | None = None, **spec: Any) -> None:
        """Applies a ModelDeployment and its ConfigMap. By default Llama-3.1-8B with 8k context: one GPU."""
        text = config if isinstance(config, str) else json.dumps(config or LLAMA_8B)
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{name}-config", "namespace": self.namespace},
                "data": {"config.json": text},
            },
            self.manifest(name, **spec),
        )

    def manifest(self, name: str, **spec: Any) -> Json:
        defaults = {
            "model": {"uri": "hf://example/model", "config": {"configMapRef": {"name": f"{name}-config"}}},
            "preflight": "Skip",
            "capacity": {"maxModelLen": 8192},
            "accelerator": {"nodeSelector": {"arena": self.namespace}},
        }
        return {
            "apiVersion": "bowsprit.dev/v1alpha1",
            "kind": "ModelDeployment",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {**defaults, **spec},
        }

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        text = yaml.safe_dump_all([dict(manifest) for manifest in manifests])
        self.kubectl("apply", "-f", "-", input=text)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments, input=input)

    def patch(self, name: str, spec: Mapping[str, Any]) -> None:
        self.kubectl("patch", "mdep", name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def get(self, name: str) -> Json:
        return self.api.get(f"{MDEP.format(self.namespace)}/{name}")

    def status(self, name: str) -> Json:
        return dict(self.get(name).get("status") or {})

    def condition(self, name: str, kind: str) -> Json:
        conditions = self.status(name).get("conditions") or []
        return next((dict(each) for each in conditions if each["type"] == kind), {})

    def pods(self, model: str | None = None) -> list[Json]:
        """Pods of the namespace that are not on their way out."""
        items = self.api.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return [
            pod
            for pod in items
            if "deletionTimestamp" not in pod["metadata"]
            and (model is None or (pod["metadata"].get("labels") or {}).get("bowsprit.dev/model") == model)
        ]

    def nodes_of(self, model: str) -> Counter[str]:
        """GPUs of the model by node, from bound pods."""
        held: Counter[str] = Counter()
        for pod in self.pods(model):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Failed", "Succeeded"):
                held[pod["spec"]["nodeName"]] += gpus_of(pod)
        return held

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits; a failure tells the state of the models and the end of the operators' logs."""
        try:
            wait_until(what, condition, seconds)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.report()}") from error

    def wait_ready(self, *names: str, seconds: float = 60.0) -> None:
        for name in names:
            self.wait(f"{name} to be Ready", lambda name=name: self.is_ready(name), seconds)  # type: ignore[misc]

    def is_ready(self, name: str) -> bool:
        """Ready for its current generation."""
        model = self.get(name)
        ready = next((each for each in _conditions(model) if each["type"] == "Ready"), None)
        return bool(
            ready
            and ready["status"] == "True"
            and ready["observedGeneration"] == model["metadata"]["generation"]
        )

    def wait_reason(self, name: str, kind: str, reason: str, seconds: float = 60.0) -> Json:
        self.wait(
            f"{kind} of {name} to have the reason {reason}",
            lambda: self.condition(name, kind).get("reason") == reason,
            seconds,
        )
        return self.condition(name, kind)

    def report(self) -> str:
        paths = [*(operator.log for operator in self._operators), *self.logs]
        logs = [path.read_text()[-3000:] for path in paths]
        return "\n".join(
            [
                self.kubectl("get", "mdep", "-o", "wide"),
                self.kubectl("get", "pods", "-o", "wide"),
                self.kubectl("get", "mdep", "-o", "yaml")[-6000:],
                *logs,
            ]
        )

    def assert_objects_untouched(self) -> None:
        """The operator writes status and nothing else of a ModelDeployment."""
        for model in self.api.get(MDEP.format(self.namespace))["items"]:
            meta = model["metadata"]
            written = [entry for entry in meta["managedFields"] if entry["manager"] == "bowsprit"]
            assert all(entry.get("subresource") == "status" for entry in written), written
            assert not meta.get("finalizers"), meta
            assert not any("kopf" in key for key in meta.get("annotations") or {}), meta

    def stop_operators(self) -> None:
        for operator in self._operators:
            if operator.running:
                operator.resume()
                operator.kill()

    def clear(self) -> None:
        """Takes everything of this test out of the cluster."""
        self.stop_operators()
        self.kubectl(
            "delete", "mdep,deployments,leaderworkersets,pods", "--all", "--wait=false", "--ignore-not-found"
        )
        for name in self._nodes:
            self.cluster.kubectl("delete", "node", name, "--wait=false", "--ignore-not-found")


def operator_kubeconfig(cluster: ControlPlane, directory: Path) -> Path:
    """Credentials of the operator's own ServiceAccount: tests run with the rights that users grant."""
    path = directory / "operator-kubeconfig"
    if not path.exists():
        token = cluster.kubectl("-n", access.NAMESPACE, "create", "token", access.NAME, "--duration=6h")
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token.strip()}
        path.write_text(yaml.safe_dump(config))
    return path


def _conditions(model: Mapping[str, Any]) -> Sequence[Json]:
    return (model.get("status") or {}).get("conditions") or []
