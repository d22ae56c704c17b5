"""What a bench sees of the control loop from outside: the API server's audit log, a watch of pods, and /proc.

None of them asks the operator how it is doing, except for the number of its passes.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bowsprit.cluster.client import FIELD_MANAGER
from e2e.cluster.api import Api
from e2e.cluster.waiting import wait_until

PATIENCE_S = 900.0
"""How long a bench waits for what usually takes seconds, because the machine may be busy."""

AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
"""


class Write(NamedTuple):
    client: str
    """The first part of its User-Agent."""
    verb: str
    resource: str


class AuditLog:
    """The writes that the API server took, from the moment on when this object is made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size

    def writes(self) -> Counter[Write]:
        with self._path.open("rb") as stream:
            stream.seek(self._start)
            return Counter(_write_of(json.loads(line)) for line in stream if line.endswith(b"\n"))

    def work(self) -> Counter[Write]:
        """Without renewals of Leases: they are everybody's sign of life."""
        return Counter({write: count for write, count in self.writes().items() if write.resource != "leases"})

    def of_operator(self) -> Counter[Write]:
        return Counter({write: n for write, n in self.writes().items() if write.client == FIELD_MANAGER})


def _write_of(event: Mapping[str, Any]) -> Write:
    ref = event.get("objectRef") or {}
    resource = "/".join(part for part in (ref.get("resource", ""), ref.get("subresource")) if part)
    return Write(event.get("userAgent", "").partition("/")[0], event["verb"], resource)


def settled(what: str, value: Callable[[], Any], quiet_s: float = 5.0) -> None:
    """Waits until `value()` has not changed for a while."""
    last: list[Any] = [None, time.monotonic()]

    def is_quiet() -> bool:
        current = value()
        if current != last[0]:
            last[:] = [current, time.monotonic()]
        return bool(time.monotonic() - last[1] >= quiet_s)

    wait_until(f"{what} to settle", is_quiet, PATIENCE_S)


class BoundPods:
    """Follows the pods of a namespace by a watch: when each was first seen, ungated and bound."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._steps: dict[str, dict[str, float]] = {"created": {}, "ungated": {}, "bound": {}}
        threading.Thread(target=self._follow, daemon=True).start()

    def wait(self, count: int) -> float:
        """Waits until so many pods are bound; returns when (time.monotonic) the last of them was."""
        bound = self._steps["bound"]
        wait_until(f"{count} pods to be bound", lambda: len(bound) >= count, PATIENCE_S)
        return sorted(bound.values())[count - 1]

    def story(self, start: float) -> str:
        """When half of the pods and all of them were at each step, in seconds after `start`."""
        return ", ".join(
            f"{what} {_half_and_all(times.values(), start)}" for what, times in self._steps.items()
        )

    def _follow(self) -> None:
        version = self._api.get(f"{self._path}?limit=1")["metadata"]["resourceVersion"]
        for event in self._api.watch(f"{self._path}?watch=1&resourceVersion={version}"):
            now, pod = time.monotonic(), event["object"]
            name, spec = pod["metadata"]["name"], pod["spec"]
            self._steps["created"].setdefault(name, now)
            if not spec.get("schedulingGates"):
                self._steps["ungated"].setdefault(name, now)
            if spec.get("nodeName"):
                self._steps["bound"].setdefault(name, now)


def _half_and_all(times: Iterable[float], start: float) -> str:
    ordered = sorted(time - start for time in times)
    return f"{ordered[len(ordered) // 2]:.1f}/{ordered[-1]:.1f} s"


def page(port: int, path: str) -> str:
    """A page of the operator's HTTP server."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def metric(port: int, name: str) -> float:
    """A metric without labels; 0 when it is not there."""
    found = [line.split()[1] for line in page(port, "/metrics").splitlines() if line.startswith(f"{name} ")]
    return float(found[0]) if found else 0.0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int, what: str) -> float:
    """Of a process in MiB: VmRSS is what is resident now, VmHWM the most that ever was."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{what}:"))
