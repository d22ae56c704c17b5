"""Commands without files read the live cluster: what pods hold, and what the operator wrote into status."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bowsprit.cli import live
from bowsprit.cli.live import LiveCluster, cluster_of
from bowsprit.cluster.errors import NotServed
from bowsprit.cluster.resources import Resource
from bowsprit.controller import main as controller
from bowsprit.controller.settings import Settings
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import Layout, ModelPlan, PodPlan, ReplicaPlan
from bowsprit.status.compute import compute
from bowsprit.status.observed import Observed, Unit
from tests.unit.cli.workspace import A100, Workspace, model, node, pod

ENGINE = {"bowsprit.dev/model": "llama"}


class Cluster:
    """A client whose lists come in pages of one object."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        self._objects = objects

    async def pages(self, resource: Resource) -> AsyncIterator[dict[str, Any]]:
        if resource.plural not in self._objects:
            raise NotServed(f"the server has no {resource.plural}", 404)
        for each in self._objects[resource.plural]:
            yield {"items": [each]}


def written(status: dict[str, Any] | None) -> dict[str, Any]:
    deployment = model("llama", "chat")
    return deployment if status is None else {**deployment, "status": status}


def ready() -> dict[str, Any]:
    """The status of one replica of two GPUs that serves on gpu-1."""
    replica = ReplicaPlan(0, Layout(A100, 1, 2, 2, (40, 40)), (PodPlan("gpu-1", 2),), (), "Fewest GPUs.")
    key = ModelKey("chat", "llama")
    observed = Observed(
        key,
        1,
        None,
        plan=ModelPlan(key, 1, (replica,)),
        units=(Unit(replica, "r1", 1, 1, 1, 1),),
        target="r1",
    )
    return compute(observed, None, "2026-11-30T12:00:00Z")


async def read(status: dict[str, Any] | None) -> LiveCluster:
    engine = pod("llama-0", "gpu-1", 2, **ENGINE)
    engine["metadata"]["namespace"] = "chat"
    client: Any = Cluster(nodes=[node("gpu-1")], pods=[engine], modeldeployments=[written(status)])
    return await cluster_of(client, ProductTable())


async def test_every_page_is_read() -> None:
    client: Any = Cluster(nodes=[node("a"), node("b")], pods=[pod("x", "a", 1)], modeldeployments=[])
    cluster = await cluster_of(client, ProductTable())
    assert [(each.name, each.free) for each in cluster.inventory.fleet.nodes] == [("a", 3), ("b", 4)]


async def test_a_cluster_without_the_crd_has_no_models() -> None:
    client: Any = Cluster(nodes=[node("a")], pods=[])
    assert (await cluster_of(client, ProductTable())).deployments == {}


async def test_the_map_and_explain_tell_what_status_says(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await read(ready())
    monkeypatch.setattr(live, "read_live_cluster", lambda products: cluster)
    drawn = workspace.run("map").stdout
    assert "gpu-1   A A . .   NVIDIA-A100-80GB-PCIe" in drawn
    assert "A   chat/llama   2      tp1/pp2" in drawn
    told = workspace.run("explain", "llama", "-n", "chat").stdout
    assert "Replica 0: tp1/pp2 on 2 GPUs of NVIDIA-A100-80GB-PCIe, 1 pod" in told
    assert "  Why: Fewest GPUs." in told


async def test_a_model_without_status_asks_for_the_operator(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await read(None)
    monkeypatch.setattr(live, "read_live_cluster", lambda products: cluster)
    result = workspace.run("explain", "llama", "-n", "chat")
    assert result.exit_code == 0
    assert "chat/llama: no status yet\nNo operator has looked at it." in result.stdout
    missing = workspace.run("explain", "llama")
    assert missing.exit_code == 2
    assert "live cluster: no ModelDeployment default/llama; there are: chat/llama" in missing.stderr


async def test_plan_without_an_inventory_plans_on_the_live_cluster(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await read(None)
    monkeypatch.setattr(live, "read_live_cluster", lambda products: cluster)
    result = workspace.run("plan", "-f", "@models.yaml")
    assert result.exit_code == 0
    assert "4 of 4 GPUs used, 0 free." in result.stdout


def test_run_hands_options_and_variables_to_the_operator(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Settings] = []

    def run(settings: Settings) -> int:
        seen.append(settings)
        return 1

    monkeypatch.setattr(controller, "run", run)
    monkeypatch.setenv("BOWSPRIT_LEASE_NAMESPACE", "bowsprit-system")
    result = workspace.run("run", "--listen-port", "0", "--bind-timeout", "5")
    assert result.exit_code == 1
    assert seen == [Settings(lease_namespace="bowsprit-system", listen_port=0, bind_timeout_s=5.0)]
