"""While nothing is known of the present spec, what serves is kept right, whatever has become of its facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bowsprit.api import defaults
from bowsprit.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    MODEL_DEPLOYMENTS,
    NODES,
    PODS,
)
from bowsprit.render import preflight
from bowsprit.render.owner import Owner
from bowsprit.render.preflight import preflight_config_map
from tests.models import LLAMA_8B
from tests.unit.controller.world import World
from tests.unit.facts.test_report import packed
from tests.unit.render.test_what_makes_a_revision import DEFAULTS
from tests.unit.status.preflight_pods import report

pytestmark = pytest.mark.looptime

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
PROVEN = {"preflight": "Required", "model": {"uri": "hf://example/model"}}
REPORT = report(facts={"config": packed(LLAMA_8B), "maxModelLen": 131072})


def declared(world: World) -> Any:
    (found,) = world.book.models
    return found


def keep_report(world: World, told: str = REPORT) -> None:
    """What preflight said of the present spec."""
    model = declared(world)
    owner = Owner(model.key.name, model.key.namespace, model.uid)
    manifest = preflight_config_map(owner, model.preflight, told, {})
    world.book.children[CONFIG_MAPS].upsert(world.server.put(CONFIG_MAPS, manifest))


def remove_config_map(world: World, name: str) -> None:
    gone = world.server.take(CONFIG_MAPS, "team", name)
    for cache in (world.book.config_maps, world.book.children[CONFIG_MAPS]):
        cache.remove(gone)


async def serving(**spec: Any) -> World:
    world = World()
    world.node("a", gpus=1)
    world.node("b", gpus=1)
    world.model("llama", **spec)
    if declared(world).preflight:
        keep_report(world)
    await world.settle()
    world.pod("llama", phase="Pending")
    await world.settle()
    world.pod("llama", **READY)
    await world.settle()
    assert declared(world).status["readyReplicas"] == 1
    return world


async def proof_asked_of_what_was_skipped(monkeypatch: pytest.MonkeyPatch) -> World:
    world = await serving()
    world.model("llama", preflight="Required", engine={"args": ["--enforce-eager"]})
    return world


async def older_contract(monkeypatch: pytest.MonkeyPatch) -> World:
    before = await serving(**PROVEN)
    monkeypatch.setattr(preflight, "CONTRACT", preflight.CONTRACT + 1)
    world = World(before.server)
    world.relist()
    return world


async def report_deleted(monkeypatch: pytest.MonkeyPatch) -> World:
    world = await serving(**PROVEN)
    remove_config_map(world, f"llama-preflight-{declared(world).preflight}")
    return world


async def config_map_deleted(monkeypatch: pytest.MonkeyPatch) -> World:
    world = await serving()
    remove_config_map(world, "llama")
    return world


async def config_map_spoilt(monkeypatch: pytest.MonkeyPatch) -> World:
    world = await serving()
    data = {"metadata": {"namespace": "team", "name": "llama"}, "data": {"config.json": "{}"}}
    world.book.config_maps.upsert(world.server.put(CONFIG_MAPS, data))
    return world


STATES: dict[str, Callable[[pytest.MonkeyPatch], Any]] = {
    "a proof is asked of what was skipped": proof_asked_of_what_was_skipped,
    "the operator has another contract with the runtime": older_contract,
    "the report was deleted by hand": report_deleted,
    "the ConfigMap was deleted": config_map_deleted,
    "the ConfigMap was spoilt": config_map_spoilt,
}


def nodes(world: World) -> dict[str, str]:
    """Node of each pod; empty while it is gated."""
    return {pod.name: pod.node for pod in world.book.pods}


async def a_pod_dies(world: World) -> None:
    (name,) = nodes(world)
    world.book.pods.remove(world.server.take(PODS, "team", name))
    await world.settle()
    world.pod("llama", 2, phase="Pending")
    await world.settle()
    (node,) = nodes(world).values()
    assert node in ("a", "b"), "pinned"


async def it_is_scaled_up(world: World) -> None:
    scaled(world, 2)
    await world.settle()
    (workload,) = world.server.objects[DEPLOYMENTS].values()
    assert workload["spec"]["replicas"] == 2
    world.pod("llama", 2, phase="Pending")
    await world.settle()
    assert sorted(nodes(world).values()) == ["a", "b"]


async def a_node_is_lost(world: World) -> None:
    ((name, node),) = nodes(world).items()
    world.book.nodes.remove(world.server.take(NODES, "", node))
    await world.settle()
    evicted = [pod for resource, pod in world.server.deleted if resource is PODS]
    assert [pod["metadata"]["name"] for pod in evicted] == [name]
    world.book.pods.remove(evicted[0])
    world.pod("llama", 2, phase="Pending")
    await world.settle()
    (found,) = nodes(world).values()
    assert {found, node} == {"a", "b"}


def scaled(world: World, replicas: int) -> None:
    known = world.server.objects[MODEL_DEPLOYMENTS]["team", "llama"]
    meta = {**known["metadata"], "generation": known["metadata"]["generation"] + 1}
    changed = {**known, "metadata": meta, "spec": {**known["spec"], "replicas": replicas}}
    world.book.models.upsert(world.server.put(MODEL_DEPLOYMENTS, changed))


HAPPENINGS = {"a pod dies": a_pod_dies, "it is scaled up": it_is_scaled_up, "a node is lost": a_node_is_lost}


@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize("state", STATES)
async def test_what_serves_is_kept_right(state: str, happening: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = await STATES[state](monkeypatch)
    await world.settle()
    await HAPPENINGS[happening](world)
    assert len(world.server.objects[CONTROLLER_REVISIONS]) == 1, "nothing new is rolled out meanwhile"
    conditions = {each["type"]: each for each in declared(world).status["conditions"]}
    assert conditions["Ready"]["status"] != "True", "the spec is still not served"


async def test_a_revision_that_was_stored_without_its_facts_has_its_own_report() -> None:
    before = await serving(**PROVEN)
    (kept,) = before.server.objects[CONTROLLER_REVISIONS].values()
    without = {name: value for name, value in kept["data"]["derived"].items() if name != "facts"}
    before.server.put(CONTROLLER_REVISIONS, {**kept, "data": {**kept["data"], "derived": without}})
    world = World(before.server)
    world.relist()
    world.model("llama", **PROVEN, engine={"args": ["--enforce-eager"]})
    await world.settle()
    await a_pod_dies(world)


async def test_another_operator_with_other_defaults_writes_nothing_but_what_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And it plans with the defaults of the day: two replicas of what runs, as it runs."""
    before = await serving(**PROVEN)
    for name, value in DEFAULTS.items():
        monkeypatch.setattr(defaults, name, value)
    world = World(before.server)
    world.server.writes.clear()
    world.relist()
    await world.settle()
    assert not world.server.writes
    await it_is_scaled_up(world)
    assert len(world.server.objects[CONTROLLER_REVISIONS]) == 1
    (workload,) = world.server.objects[DEPLOYMENTS].values()
    engine = workload["spec"]["template"]["spec"]["containers"][0]
    assert engine["image"] == "vllm/vllm-openai:v0.32.0"


async def test_a_report_that_ends_differently_rolls_nothing() -> None:
    world = await serving(**PROVEN)
    remove_config_map(world, f"llama-preflight-{declared(world).preflight}")
    await world.settle()
    weights = {"layers": [[32, 1 << 28]], "embedding": 1, "head": 1, "other": 1, "tied": False}
    facts = {"config": packed({**LLAMA_8B, "rope_theta": 1}), "maxModelLen": 8192, "weights": {"1": weights}}
    keep_report(world, report(facts=facts))
    (pod,) = nodes(world)
    await world.settle()
    assert list(nodes(world)) == [pod]
    assert len(world.server.objects[CONTROLLER_REVISIONS]) == 1
    assert len(world.server.objects[DEPLOYMENTS]) == 1
    conditions = {each["type"]: each for each in declared(world).status["conditions"]}
    assert conditions["Ready"]["status"] == "True"


async def test_facts_are_kept_with_the_revision_that_was_made_by_them() -> None:
    for spec in ({}, PROVEN):
        world = await serving(**spec)
        (kept,) = world.server.objects[CONTROLLER_REVISIONS].values()
        assert "config" in kept["data"]["derived"]["facts"]
