"""Who follows every pod change of a test: no GPU may be promised twice, and readiness is counted."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from e2e.cluster.control_plane import ControlPlane

GPU = "nvidia.com/gpu"


def gpus_of(pod: Mapping[str, Any]) -> int:
    containers = pod["spec"]["containers"]
    return sum(int((each.get("resources") or {}).get("limits", {}).get(GPU, 0)) for each in containers)


def pinned_node(pod: Mapping[str, Any]) -> str:
    """The node that a pod is bound or pinned to; "" while it is gated."""
    spec = pod["spec"]
    if spec.get("schedulingGates"):
        return ""
    required = (
        ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        or {}
    ).get("nodeSelectorTerms") or []
    names = [
        value for term in required for field in term.get("matchFields") or () for value in field["values"]
    ]
    return str(spec.get("nodeName") or (names[0] if names else ""))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """It is Ready, and nobody has told it to stop."""
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions") or ()}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


class Referee:
    """Checks that no GPU is promised twice, and counts the pods that are Ready.

    A pod counts from the moment it is pinned until it has finished or is gone: so an old pod that is still
    stopping and a new one on its GPU are a foul.
    """

    def __init__(self, cluster: ControlPlane, namespace: str, capacity: Mapping[str, int]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._capacity = capacity
        self._pods: dict[str, tuple[str, int]] = {}
        self.fouls: list[str] = []
        self.ready: list[int] = []
        """Pods that are Ready and not told to stop, after every event."""
        self._ready: set[str] = set()

    @contextmanager
    def watching(self) -> Iterator[Referee]:
        command = self._cluster.kubectl_command(
            "-n", self._namespace, "get", "pods", "--watch", "--output-watch-events", "-o", "json"
        )
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            thread = threading.Thread(target=self._follow, args=(process,), daemon=True)
            thread.start()
            try:
                yield self
            finally:
                process.terminate()
                thread.join(timeout=10)
        assert self.ready, "the referee saw no pod at all"
        assert not self.fouls, "\n".join(self.fouls)

    def _follow(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            self._check(event["type"], event["object"])

    def _check(self, kind: str, pod: Mapping[str, Any]) -> None:
        uid, node = pod["metadata"]["uid"], pinned_node(pod)
        finished = pod["status"].get("phase") in ("Failed", "Succeeded")
        self._pods.pop(uid, None)
        self._ready -= {uid}
        if kind != "DELETED" and is_ready(pod):
            self._ready.add(uid)
        self.ready.append(len(self._ready))
        if kind != "DELETED" and node and not finished:
            self._pods[uid] = (node, gpus_of(pod))
        held: Counter[str] = Counter()
        for where, gpus in self._pods.values():
            held[where] += gpus
        for where, gpus in held.items():
            if gpus > self._capacity.get(where, 0):
                self.fouls.append(
                    f"{time.time():.2f}: {gpus} GPUs pinned on {where}: {pod['metadata']['name']}"
                )
