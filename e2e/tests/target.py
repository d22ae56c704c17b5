"""The cluster under test: the one on this machine, or one of the user's own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bowsprit.api.defaults import RUNTIME_IMAGE
from e2e.cluster.control_plane import KubectlFailed

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """A cluster with the operator in it."""

    kubeconfig: Path
    kubectl_path: str
    engine: str
    """Image with a vLLM that runs on the cluster's nodes."""
    my_opt: str
    """Image of the plugin example images/plugin-example/my-opt."""
    claim: Callable[[str, str], list[Manifest]]
    """Namespace and name of a PersistentVolumeClaim that pods on all nodes can mount -> its manifests."""
    resource: str
    """What GPUs are called in this cluster."""
    uneven_llama: str = ""
    """Image of the plugin example images/plugin-example/uneven-llama; empty where there is none."""
    small_plugins: str = ""
    """Image of e2e/tests/small_plugins.py; empty where it is not built yet."""
    runtime: str = RUNTIME_IMAGE
    """Image of images/runtime, for commands that are run beside the operator."""

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """kubectl's output. An error is an exception with kubectl's own words."""
        command = [self.kubectl_path, f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """An object or a list, by `kubectl get`."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output=json"))
        return found

    def nodes(self) -> list[str]:
        """Nodes that pods may run on."""
        nodes = self.get("nodes")["items"]
        return [node["metadata"]["name"] for node in nodes if not node["spec"].get("unschedulable")]
