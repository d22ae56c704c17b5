from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.workspace import Workspace, config_map, listed, model, node


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever the machine has: the CLI under test sees no kubeconfig and no settings."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("BOWSPRIT_PRODUCTS", "BOWSPRIT_KUBECONFIG", "BOWSPRIT_CONTEXT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """models.yaml: one model of 2 GPUs with its config. nodes.json: two nodes of 4 GPUs."""
    space = Workspace(tmp_path)
    space.write("models.yaml", model("llama"), config_map())
    space.write("nodes.json", listed(node("gpu-1"), node("gpu-2")))
    return space
