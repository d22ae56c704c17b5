"""What the benches of the control loop act on: a control plane of their own, its models, and the operator."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from bench.observe import AUDIT_POLICY, PATIENCE_S, AuditLog, BoundPods, cpu_seconds, memory_mib, metric, page
from bowsprit.api.crd import crd_yaml
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.nodes import gpu_node
from e2e.cluster.waiting import wait_until
from tests.integration.arena import OperatorProcess
from tests.models import LLAMA_8B

Json = dict[str, Any]

NAMESPACE = "bench"
CONNECTIONS = 8
AUDIT_LOG = "audit.log"

FAST_FLAGS: Mapping[str, Sequence[str]] = {
    "kube-controller-manager": ["--kube-api-qps=500", "--kube-api-burst=1000"],
    "kube-scheduler": ["--kube-api-qps=500", "--kube-api-burst=1000"],
}
"""For benches in which the controllers only set the scene."""


class Operator:
    """The operator as a process, seen from outside."""

    def __init__(self, process: OperatorProcess) -> None:
        self._process = process
        self.started = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def passes(self) -> int:
        """Planning passes so far."""
        return int(metric(self._process.port, "bowsprit_reconcile_duration_seconds_count"))

    @property
    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    def memory_mib(self, what: str) -> float:
        return memory_mib(self.pid, what)

    def wait_until_leading(self) -> None:
        """Until its caches are full and it holds the Lease."""
        port = self._process.port
        wait_until("the operator's caches", lambda: page(port, "/readyz") == "ok", PATIENCE_S)
        wait_until("the operator to lead", lambda: metric(port, "bowsprit_leader") == 1, PATIENCE_S)


class Stage:
    def __init__(self, cluster: ControlPlane, directory: Path) -> None:
        self.cluster = cluster
        self.api = cluster.api()
        self._directory = directory

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl("-n", NAMESPACE, *arguments)

    def file(self, name: str, manifests: Sequence[Mapping[str, Any]]) -> Path:
        """Manifests as a YAML file, for kubectl."""
        path = self._directory / name
        path.write_text(yaml.dump_all(manifests, Dumper=yaml.CSafeDumper, sort_keys=False))
        return path

    def create(self, collection: str, manifests: Sequence[Mapping[str, Any]]) -> None:
        """Creates objects over several connections. `collection`: such as "api/v1/pods"."""
        self._create(_path(collection), manifests)

    def create_nodes(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Creates nodes that nobody plays: without KWOK, their pods stay as they were created."""
        self._create("/api/v1/nodes", nodes)

    def _create(self, path: str, manifests: Sequence[Mapping[str, Any]]) -> None:
        shares = [manifests[start::CONNECTIONS] for start in range(CONNECTIONS)]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for done in [pool.submit(self.api.create_all, path, share) for share in shares]:
                done.result()

    def count(self, collection: str) -> int:
        """Objects in a collection of the namespace."""
        listed = self.api.get(f"{_path(collection)}?limit=1")
        return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))

    def audit(self) -> AuditLog:
        return AuditLog(self._directory / AUDIT_LOG)

    def pods(self) -> BoundPods:
        return BoundPods(self.api, NAMESPACE)

    @contextmanager
    def operator(self) -> Iterator[Operator]:
        log = self._directory / "operator.log"
        log.unlink(missing_ok=True)
        place = f"--lease-namespace={NAMESPACE}"
        process = OperatorProcess(self.cluster.kubeconfig, log, "bench", NAMESPACE, place).start()
        try:
            operator = Operator(process)
            operator.wait_until_leading()
            yield operator
        finally:
            if process.running:
                process.stop()


def _path(collection: str) -> str:
    group, _, plural = collection.rpartition("/")
    return f"/{group}/namespaces/{NAMESPACE}/{plural}"


@contextmanager
def stage(flags: Mapping[str, Sequence[str]] | None = None) -> Iterator[Stage]:
    """A control plane with an audit log, Bowsprit's CRD and an empty namespace. `flags` as ControlPlane's."""
    with TemporaryDirectory(prefix="bowsprit-bench-") as folder:
        directory = Path(folder)
        policy = directory / "audit.yaml"
        policy.write_text(AUDIT_POLICY)
        audit = [
            f"--audit-policy-file={policy}",
            f"--audit-log-path={directory / AUDIT_LOG}",
            "--audit-log-maxsize=2000",  # MB; a log that starts anew would lose the count
        ]
        extra = {**(flags or {}), "kube-apiserver": audit}
        with ControlPlane(directory / "cluster", extra_flags=extra) as cluster:
            cluster.install_definition(crd_yaml())
            cluster.kubectl("create", "namespace", NAMESPACE)
            account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
            wait_until("the service account", lambda: cluster.api().answers(account), PATIENCE_S)
            yield Stage(cluster, directory)


def a100_node(name: str) -> Json:
    """A fake node with 8 GPUs."""
    return gpu_node(name, product="NVIDIA-A100-80GB-PCIe", memory_mib=81920, count=8)


def config_map(name: str) -> Json:
    """The config.json of a model of eight billion parameters."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"config.json": json.dumps(LLAMA_8B)},
    }


def model(name: str) -> Json:
    """A model of one GPU, whose config.json is in the ConfigMap of the same name."""
    return {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "model": {"uri": "hf://example/model", "config": {"configMapRef": {"name": name}}},
            "preflight": "Skip",
            "capacity": {"maxModelLen": 8192},
        },
    }
