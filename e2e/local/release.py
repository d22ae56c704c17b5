"""The operator in the local cluster, as users install it: by Helm, from the chart, in a namespace that takes
restricted pods only."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bowsprit.cluster import access
from e2e.cluster.build import ensure_programs
from e2e.cluster.control_plane import KubectlFailed
from e2e.cluster.helm import CHART, RELEASE, HelmFailed, helm
from e2e.local.materials import Materials

NAMESPACE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": access.NAMESPACE,
        "labels": {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")},
    },
}
START_SECONDS = 180


@dataclass(frozen=True)
class Release:
    """The chart's release, of the images that are built of this work tree."""

    kubeconfig: Path
    materials: Materials

    def install(self, chart: Path = CHART, **more: Any) -> None:
        """Installs the chart, or upgrades what is there; returns when all pods of the operator are ready.

        chart: its folder.
        more: values beside those that this cluster needs.
        """
        made = self._kubectl("apply", "--server-side", "--filename=-", input=yaml.safe_dump(NAMESPACE))
        if made.returncode != 0:
            raise KubectlFailed(made.stderr)
        try:
            self._helm(
                *("upgrade", RELEASE, str(chart), "--install"),
                *("--wait", f"--timeout={START_SECONDS}s"),
                values={**self._values(), **more},
            )
        except HelmFailed as failed:
            raise HelmFailed(f"{failed}\n{self._report()}") from failed

    def uninstall(self) -> str:
        """Returns what Helm says of it."""
        return self._helm("uninstall", RELEASE, "--wait")

    def _values(self) -> dict[str, Any]:
        operator, runtime = self.materials.operator, self.materials.runtime
        server = yaml.safe_load(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        return {
            "image": {"repository": operator.repository, "tag": operator.tag},
            "runtimeImage": runtime.reference,
            "networkPolicy": {"enabled": True, "apiServerPorts": [443, urlsplit(server).port]},
        }

    def _helm(self, *arguments: str, values: dict[str, Any] | None = None) -> str:
        place = f"--namespace={access.NAMESPACE}"
        return helm(*arguments, place, values=values, kubeconfig=self.kubeconfig)

    def _report(self) -> str:
        """Why pods are not ready, in the words of the cluster."""
        answers = [
            self._kubectl(*question)
            for question in (
                ("get", "pods", "--output=wide"),
                ("get", "events", "--sort-by=.lastTimestamp"),
                ("logs", "--selector=app.kubernetes.io/component=operator", "--prefix", "--tail=40"),
            )
        ]
        return "\n".join(f"{answer.stdout}{answer.stderr}" for answer in answers)

    def _kubectl(self, *arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        kubectl = ensure_programs().binary("kubectl")
        command = [kubectl, f"--kubeconfig={self.kubeconfig}", f"--namespace={access.NAMESPACE}", *arguments]
        return subprocess.run(command, input=input, capture_output=True, text=True, check=False)
