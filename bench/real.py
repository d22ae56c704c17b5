"""What the benches of real engines act on: two nodes with real containers, and vLLM on CPUs.

They take the cluster that `make e2e KEEP=1` has left, or start one as `make e2e` does; both need root.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from e2e.cluster import background
from e2e.cluster.api import Api
from e2e.cluster.real.packages import ensure_packages
from e2e.cluster.waiting import wait_until
from e2e.local.cluster import LocalCluster, directory, empty_directory
from e2e.local.materials import ensure_materials
from e2e.tests.stage import CLAIM, CLIENT, Stage, model_writer
from e2e.tests.targets import local_target

Json = dict[str, Any]

START_S = 600.0
"""The most that an engine may take to start on a busy machine."""


def is_possible() -> bool:
    """Whether this machine can have such nodes; says what it lacks."""
    try:
        ensure_packages()
    except background.NotPossible as why:
        print(f"    left out: {why}")
        return False
    return True


@contextmanager
def real_stage() -> Iterator[Stage]:
    """A namespace with the tiny models in a claim, and a client."""
    materials = ensure_materials()
    with ExitStack() as stack:
        if not background.is_kept(directory()):
            stack.enter_context(LocalCluster(materials, empty_directory()))
        target = local_target(materials)
        name = f"bowsprit-bench-{uuid.uuid4().hex[:6]}"
        target.kubectl("create", "namespace", name)
        stack.callback(target.kubectl, "delete", "namespace", name, "--wait=false")
        stage = Stage(target, name)
        wait_until("the service account", lambda: bool(stage.get("serviceaccounts")["items"]))
        stage.apply(*target.claim(name, CLAIM), *model_writer(target.engine))
        stage.run(CLIENT, "sleep", "infinity")
        stage.wait_for("pod/model-writer", "jsonpath={.status.phase}=Succeeded", 180)
        stage.wait_for(f"pod/{CLIENT}", "condition=Ready", 180)
        yield stage


class SeenPods:
    """Follows the pods of a namespace by a watch: when (time.monotonic) each version was seen."""

    def __init__(self, stage: Stage) -> None:
        self._api = Api(stage.target.kubeconfig)
        self._path = f"/api/v1/namespaces/{stage.namespace}/pods"
        self._seen: list[tuple[float, Json]] = []
        self._there: dict[str, Json] = {}
        listed = self._api.get(self._path)
        for pod in listed["items"]:
            self._see(pod)
        version = listed["metadata"]["resourceVersion"]
        threading.Thread(target=self._follow, args=(version,), daemon=True).start()

    @property
    def there(self) -> list[Json]:
        """The pods that there are, those on their way out too."""
        return list(dict(self._there).values())

    def first(self, is_it: Callable[[Json], bool]) -> float | None:
        """When a pod was first seen to be something; None while none was."""
        return next((moment for moment, pod in tuple(self._seen) if is_it(pod)), None)

    def wait(self, what: str, is_it: Callable[[Json], bool], seconds: float = START_S) -> float:
        """Waits until a pod is seen to be something; returns when that was."""
        wait_until(what, lambda: self.first(is_it) is not None, seconds)
        moment = self.first(is_it)
        assert moment is not None
        return moment

    def _follow(self, version: str) -> None:
        for event in self._api.watch(f"{self._path}?watch=1&resourceVersion={version}"):
            self._see(event["object"])
            if event["type"] == "DELETED":
                self._there.pop(event["object"]["metadata"]["uid"], None)

    def _see(self, pod: Json) -> None:
        self._seen.append((time.monotonic(), pod))
        self._there[pod["metadata"]["uid"]] = pod


def is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def plain(template: Json, labels: dict[str, str]) -> Json:
    """A pod template of ours as somebody else's: nothing that Bowsprit knows it by, and no gate."""
    spec = {key: value for key, value in template["spec"].items() if key != "schedulingGates"}
    return json.loads(json.dumps({"metadata": {"labels": labels}, "spec": spec}))


def listed(values: Sequence[float]) -> str:
    return f"{median(values):.1f} s ({', '.join(f'{value:.1f}' for value in values)})"
