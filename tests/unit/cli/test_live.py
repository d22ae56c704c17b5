"""Commands without files read the live cluster: what pods hold, and what the operator wrote into status."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bowsprit.cli import history, live, preflighting
from bowsprit.cli.gpumap import map_parts
from bowsprit.cli.live import LiveCluster, cluster_of
from bowsprit.cli.options import ClusterRef
from bowsprit.cli.problems import BadInput
from bowsprit.cli.screen import plain
from bowsprit.cli.subjects import live_gpus
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
Wanted = tuple[str | None, str | None]
"""kubeconfig and context."""


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
    monkeypatch.setattr(live, "read_live_cluster", lambda *_: cluster)
    drawn = workspace.run("map").stdout
    assert "gpu-1   A A . .   NVIDIA-A100-80GB-PCIe" in drawn
    assert "A   chat/llama   2      tp1/pp2" in drawn
    told = workspace.run("explain", "llama", "-n", "chat").stdout
    assert "Replica 0: tp1/pp2 on 2 GPUs of NVIDIA-A100-80GB-PCIe, 1 pod" in told
    assert "  Why: Fewest GPUs." in told


@pytest.mark.parametrize(
    ("serving", "instead"),
    [({"serving": "r0"}, "revision r0 serves, or did last"), ({}, "no revision has served yet")],
    ids=["another serves", "the first"],
)
async def test_explain_tells_a_revision_that_failed(
    serving: dict[str, str], instead: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = "2026-11-30T12:00:00Z"
    failed = {"revision": "r1", "reason": "CrashLooping", "message": "It ended 5 times.", "time": time}
    cluster = await read({**ready(), "revisions": {**serving, "target": "r1", "failed": failed}})
    monkeypatch.setattr(live, "read_live_cluster", lambda *_: cluster)
    told = workspace.run("explain", "llama", "-n", "chat").stdout
    assert f"Revision r1 failed at {time} (CrashLooping); {instead}\n" in told


async def test_the_legend_of_the_map_says_why_a_model_has_no_replicas() -> None:
    specs: dict[str, dict[str, Any]] = {"later": {}, "none": {"replicas": 0}, "paused": {"suspend": True}}
    models = [model(name, "chat", **spec) for name, spec in specs.items()]
    client: Any = Cluster(nodes=[node("gpu-1")], pods=[], modeldeployments=models)
    drawn = "".join(plain(part) for part in map_parts(live_gpus(await cluster_of(client, ProductTable()))))
    assert "A   chat/later    0      not placed   -" in drawn
    assert "B   chat/none     0      0 replicas   -" in drawn
    assert "C   chat/paused   0      suspended    -" in drawn


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Wanted]:
    """The clusters that commands have asked for, by kubeconfig and context; none of them answers."""
    seen: list[Wanted] = []

    def read_live_cluster(_: ProductTable, cluster: ClusterRef) -> LiveCluster:
        seen.append(cluster)
        raise BadInput([])

    def prove(*arguments: Any) -> list[Any]:
        seen.append(arguments[2])
        raise BadInput([])

    def read_history(cluster: ClusterRef, namespace: str, name: str) -> None:
        seen.append(cluster)
        raise BadInput([])

    def operate(settings: Settings) -> int:
        seen.append((settings.kubeconfig, settings.context))
        return 0

    monkeypatch.setattr(live, "read_live_cluster", read_live_cluster)
    monkeypatch.setattr(preflighting, "prove", prove)
    monkeypatch.setattr(history, "read_history", read_history)
    monkeypatch.setattr(controller, "run", operate)
    return seen


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        pytest.param([], (None, None), id="as kubectl finds it"),
        pytest.param(["--kubeconfig", "k"], ("k", None), id="a kubeconfig"),
        pytest.param(["--context=c"], (None, "c"), id="a context"),
        pytest.param(["--context", "c", "--kubeconfig", "k"], ("k", "c"), id="both"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["plan", "-f", "@models.yaml"],
        ["render", "-f", "@models.yaml"],
        ["map"],
        ["map", "-f", "@models.yaml"],
        ["explain", "llama", "-n", "chat"],
        ["explain", "llama", "-f", "@models.yaml"],
        ["preflight", "-f", "@models.yaml"],
        ["history", "llama"],
        ["diff", "llama", "1", "2"],
        ["run"],
    ],
    ids=" ".join,
)
def test_every_command_takes_the_cluster_as_kubectl_does(
    asked: list[Wanted], workspace: Workspace, command: list[str], arguments: list[str], wanted: Wanted
) -> None:
    workspace.run(*command, *arguments)
    assert asked == [wanted]


def test_a_variable_chooses_the_cluster_and_an_option_goes_before_it(
    asked: list[Wanted], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOWSPRIT_KUBECONFIG", "k")
    monkeypatch.setenv("BOWSPRIT_CONTEXT", "d")
    workspace.run("map", "--context", "c")
    assert asked == [("k", "c")]


@pytest.mark.parametrize("status", [None, {"observedGeneration": -1}], ids=["absent", "the schema's"])
async def test_a_model_without_status_asks_for_the_operator(
    status: dict[str, Any] | None, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await read(status)
    monkeypatch.setattr(live, "read_live_cluster", lambda *_: cluster)
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
    monkeypatch.setattr(live, "read_live_cluster", lambda *_: cluster)
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
