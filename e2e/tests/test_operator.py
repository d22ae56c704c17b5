"""The operator as Helm installs it: what models feel of it when it is killed, upgraded and taken away.

One model lives through all of it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bowsprit.cluster import access
from e2e.cluster.api import Api
from e2e.cluster.helm import next_version
from e2e.cluster.real import cgroups
from e2e.local.cluster import LocalCluster
from e2e.local.release import Release
from e2e.tests.stage import Stage
from e2e.tests.target import Target

pytestmark = pytest.mark.e2e

MODEL = "steady"
CRD = "modeldeployments.bowsprit.dev"
HERE = ("--namespace", access.NAMESPACE)
OPERATORS = ("pods", "--selector=app.kubernetes.io/component=operator")
TAKEOVER_SECONDS = 60


@pytest.fixture(scope="module")
def leaders(stage: Stage, release: Release) -> Iterator[tuple[str, str]]:
    """The pod that led when the model's Deployment was written, and was killed at that moment; and the one
    that placed the model."""
    first = leader(stage.target)
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill_at_the_first_deployment, stage, release.kubeconfig, first)
        stage.model(MODEL, preflight="Skip")
        killed.result()
    stage.wait("another to lead", lambda: leader(stage.target) != first, TAKEOVER_SECONDS)
    yield first, leader(stage.target)
    stage.remove(MODEL)


@pytest.fixture
def serving(stage: Stage, leaders: tuple[str, str]) -> str:
    """The model, Ready."""
    stage.wait_ready(MODEL, 600)
    return MODEL


def test_another_goes_on_when_the_leader_is_killed_while_it_places_a_model(
    stage: Stage, leaders: tuple[str, str], serving: str
) -> None:
    first, second = leaders
    assert second != first
    assert len(stage.lives(serving)) == 1
    assert stage.complete(serving, " ba be bi")
    stage.wait("two operators again", lambda: len(ready_operators(stage.target)) == 2)


def test_upgrading_operator_and_crd_restarts_no_engine_and_loses_no_request(
    stage: Stage, serving: str, release: Release, tmp_path: Path
) -> None:
    engines, operators = stage.lives(serving), ready_operators(stage.target)
    with Asking(stage, serving) as asking:
        release.install(next_version(tmp_path), podAnnotations={"example.com/note": "upgraded"})
        assert has_new_field(stage.target)
        assert not ready_operators(stage.target) & operators
        acts(stage, serving, priority=1)
        release.install()
        assert not has_new_field(stage.target)
        acts(stage, serving, priority=0)
    assert set(asking.answers) == {200}
    assert stage.lives(serving) == engines


def test_models_outlive_the_release_and_the_next_one_takes_them_over(
    stage: Stage, serving: str, release: Release, local_cluster: LocalCluster
) -> None:
    engines = stage.lives(serving)
    with Asking(stage, serving) as asking:
        assert f"kept due to the resource policy:\n[CustomResourceDefinition] {CRD}" in release.uninstall()
        stage.wait("the operators to be gone", lambda: not stage.target.get(*HERE, *OPERATORS)["items"])
        release.install()
        acts(stage, serving, priority=2)
    assert set(asking.answers) == {200}
    assert stage.lives(serving) == engines


def test_models_go_with_the_release_when_the_crd_is_not_kept(
    stage: Stage, serving: str, release: Release, local_cluster: LocalCluster
) -> None:
    release.install(crds={"keep": False})
    assert "kept" not in release.uninstall()
    try:
        stage.wait(
            "the model's pods to be gone", lambda: not stage.pods(f"bowsprit.dev/model={serving}"), 180
        )
        stage.wait("the CRD to be gone", lambda: CRD not in stage.target.kubectl("get", "crds"))
    finally:
        release.install()  # for the tests to come


def leader(target: Target) -> str:
    """The pod that holds the Lease; empty where none does."""
    held = target.get(*HERE, "lease", access.NAME)["spec"].get("holderIdentity") or ""
    return str(held).rpartition("-")[0]


def kill_at_the_first_deployment(stage: Stage, kubeconfig: Path, operator: str) -> None:
    """SIGKILL, and the pod is gone for good: as when its machine fails."""
    processes = cgroups.processes_of_pod(stage.target.get(*HERE, "pod", operator)["metadata"]["uid"])
    deployments = f"/apis/apps/v1/namespaces/{stage.namespace}/deployments?watch=1&timeoutSeconds=60"
    next(Api(kubeconfig).watch(deployments))
    for process in processes:
        os.kill(process, signal.SIGKILL)
    stage.target.kubectl(*HERE, "delete", "pod", operator, "--force", "--grace-period=0")


def ready_operators(target: Target) -> set[str]:
    """Pods of the operator that are ready and stay."""
    return {
        pod["metadata"]["name"]
        for pod in target.get(*HERE, *OPERATORS)["items"]
        if "deletionTimestamp" not in pod["metadata"]
        and all(status["ready"] for status in pod["status"].get("containerStatuses", [{"ready": False}]))
    }


def has_new_field(target: Target) -> bool:
    """Whether the CRD is that of the version to come."""
    (version,) = target.get("crd", CRD)["spec"]["versions"]
    return "newField" in version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def acts(stage: Stage, model: str, **spec: Any) -> None:
    """An operator takes note of a change that concerns no pod."""
    stage.patch(model, spec)

    def noted() -> bool:
        found = stage.get("mdep", model)
        return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])

    stage.wait("an operator to take note", noted, TAKEOVER_SECONDS)


class Asking:
    """Asks a model for tokens, one request after the other, until the block ends."""

    def __init__(self, stage: Stage, model: str) -> None:
        self.answers: list[int] = []
        """The status of each answer."""
        self._stage, self._model = stage, model
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Asking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        url = f"{self._stage.url(self._model)}/v1/completions"
        body = {"model": self._model, "prompt": " ba be bi", "max_tokens": 4}
        while not self._over.is_set():
            self.answers.append(self._stage.ask(url, body)[0])
