"""What integration tests share: one control plane for the session, and a namespace for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bowsprit.api.crd import crd_yaml
from e2e.cluster.control_plane import ControlPlane
from e2e.cluster.waiting import wait_until
from tests.integration.arena import Arena, OperatorProcess, operator_kubeconfig
from tests.integration.life import UNREADY_STAGE
from tests.integration.metrics_api import Metrics, served_metrics

# Autoscalers look this often, so that a test of them takes seconds.
HPA_SYNC_SECONDS = 2.0

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane without nodes. Tests make their own, under names of their own, and delete them."""
    with ControlPlane(hpa_sync_seconds=HPA_SYNC_SECONDS) as cluster:
        yield cluster


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own, in which pods can be created at once."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    api, account = control_plane.api(), f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(f"the service account of {name}", lambda: api.answers(account))
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false")


def install_api(cluster: ControlPlane) -> None:
    """The ModelDeployment CRD and the operator's rights."""
    cluster.install_definition(crd_yaml())
    cluster.kubectl("apply", "-f", str(ROOT / "operator" / "rbac.yaml"))


@pytest.fixture(scope="session")
def api_installed(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with all that the operator needs."""
    install_api(control_plane)
    control_plane.apply(UNREADY_STAGE)
    return control_plane


@pytest.fixture
def arena(api_installed: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Arena]:
    """Nodes, models and operators of one test; see arena.py."""
    stage = Arena(api_installed, namespace, tmp_path)
    yield stage
    try:
        stage.assert_objects_untouched()
    finally:
        stage.clear()


@pytest.fixture(scope="module")
def operator(
    api_installed: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a module, for those in which nothing happens to the operator itself."""
    directory = tmp_path_factory.mktemp("operator")
    kubeconfig = operator_kubeconfig(api_installed, directory)
    process = OperatorProcess(
        kubeconfig, directory / "operator.log", "operator", f"life-{uuid.uuid4().hex[:8]}"
    )
    yield process.start()
    process.stop()


@pytest.fixture
def metrics(control_plane: ControlPlane) -> Iterator[type[Metrics]]:
    with served_metrics(control_plane) as served:
        yield served


@pytest.fixture
def stage(arena: Arena, operator: OperatorProcess) -> Arena:
    """An arena in which the module's operator acts."""
    arena.logs.append(operator.log)
    return arena
