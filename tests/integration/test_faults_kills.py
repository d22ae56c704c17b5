"""The operator is killed at any moment: nothing is lost, nothing promised twice, and the end is the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.integration.arena import Arena, OperatorProcess
from tests.integration.life import engine, uids, workloads
from tests.integration.referee import Referee, gpus_of

pytestmark = pytest.mark.integration

KILLS = 20
NODES, GPUS = 4, 4
MODELS = ("chat", "code", "draft", "embed", "judge", "vision")
Step = Callable[[Arena], None]


def story(nodes: Sequence[str]) -> list[Step]:
    """A working day. In the end `judge` waits for four GPUs: 14 of the 16 are held."""
    several = {"pipeline": 3, "gpusPerPod": 1}
    return [
        lambda arena: arena.model("chat", replicas=2),
        lambda arena: arena.model("code", parallelism=several),
        lambda arena: arena.model("draft", parallelism={"pipeline": 2}, replicas=2),
        lambda arena: arena.patch("chat", {"replicas": 3}),
        lambda arena: arena.model("embed"),
        lambda arena: arena.delete_node(nodes[1]),
        lambda arena: arena.patch("code", {"engine": engine("--max-num-seqs=64")}),
        lambda arena: arena.model("vision", parallelism={"tensor": 2}),
        lambda arena: arena.patch("draft", {"replicas": 1}),
        lambda arena: arena.restore_node(nodes[1], gpus=GPUS),
        lambda arena: arena.patch("chat", {"suspend": True}),
        lambda arena: arena.patch("code", {"replicas": 2}),
        lambda arena: arena.kubectl("delete", "mdep", "embed", "--wait=false"),
        lambda arena: arena.delete_node(nodes[2]),
        lambda arena: arena.patch("vision", {"engine": engine("--max-num-seqs=64")}),
        lambda arena: arena.patch("chat", {"suspend": False}),
        lambda arena: arena.restore_node(nodes[2], gpus=GPUS),
        lambda arena: arena.model("embed", engine=engine("--max-num-seqs=128")),
        lambda arena: arena.patch("draft", {"replicas": 1, "engine": engine("--max-num-seqs=64")}),
        lambda arena: arena.model("judge", parallelism={"tensor": 4}, priority=-1),
    ]


END = {
    "chat": ("Ready", "tp1/pp1", 3, 3),
    "code": ("Ready", "tp1/pp3", 2, 6),
    "draft": ("Ready", "tp1/pp2", 1, 2),
    "embed": ("Ready", "tp1/pp1", 1, 1),
    "judge": ("Waiting", "", 0, 0),
    "vision": ("Ready", "tp2/pp1", 1, 2),
}


@pytest.mark.parametrize("seed", [None, 1], ids=["undisturbed", "killed twenty times"])
def test_the_end_is_the_same(arena: Arena, seed: int | None) -> None:
    nodes = arena.nodes(NODES, gpus=GPUS)
    operator = arena.operator()
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, GPUS)).watching() as referee:
        for disturb, step in zip(_faults(arena, operator, referee, seed), story(nodes), strict=False):
            step(arena)
            disturb()
        arena.wait("the end of the story", lambda: end_of(arena) == END, 120)
        arena.wait("nothing to be left over", lambda: not leftovers(arena))
    assert operator.running


def _faults(
    arena: Arena, operator: OperatorProcess, referee: Referee, seed: int | None
) -> Iterator[Callable[[], None]]:
    """What happens after each step: a kill, so many changes of pods later, or peace until all is well."""
    chance = random.Random(seed)
    for _ in range(KILLS):
        if seed is None:
            yield lambda: settle(arena)
        else:
            yield lambda: kill(arena, operator, referee, chance.randrange(25))


def kill(arena: Arena, operator: OperatorProcess, referee: Referee, changes: int) -> None:
    """Kills the operator when pods have changed so often, or nothing more is to change."""
    until = len(referee.ready) + changes
    arena.wait(f"{changes} changes of pods", lambda: len(referee.ready) >= until or is_settled(arena))
    operator.kill()
    operator.start()


def settle(arena: Arena) -> None:
    arena.wait("all to be settled", lambda: is_settled(arena))


def is_settled(arena: Arena) -> bool:
    """Every model is as its spec asks, or waits for GPUs."""
    items = arena.api.get(f"/apis/bowsprit.dev/v1alpha1/namespaces/{arena.namespace}/modeldeployments")[
        "items"
    ]
    return all(_is_settled(item) for item in items)


def _is_settled(model: dict[str, Any]) -> bool:
    status = model.get("status") or {}
    known = status.get("observedGeneration") == model["metadata"]["generation"]
    return known and status.get("phase") in ("Ready", "Waiting", "Suspended")


def end_of(arena: Arena) -> dict[str, tuple[str, str, int, int]]:
    """Phase, layout, ready replicas and bound GPUs of every model."""
    found = {}
    for name in MODELS:
        status = arena.status(name)
        gpus = sum(gpus_of(pod) for pod in arena.pods(name) if pod["spec"].get("nodeName"))
        found[name] = (
            status.get("phase", ""),
            status.get("layout", ""),
            status.get("readyReplicas", 0),
            gpus,
        )
    return found


def leftovers(arena: Arena) -> list[str]:
    """Workloads that no present revision asks for, and pods that no workload does."""
    left = []
    for model in MODELS:
        target = arena.status(model)["revisions"]["target"]
        asked = {
            name: item
            for name, item in workloads(arena, model).items()
            if item["metadata"]["labels"]["bowsprit.dev/revision"] == target
        }
        left += sorted(workloads(arena, model).keys() - asked.keys())
        left += [pod["metadata"]["name"] for pod in arena.pods(model) if not pod["spec"].get("nodeName")]
        wanted = sum(
            item["spec"]["replicas"] * item["spec"].get("leaderWorkerTemplate", {}).get("size", 1)
            for item in asked.values()
        )
        if len(uids(arena, model)) != wanted:
            left.append(f"{model}: {len(uids(arena, model))} pods for {wanted}")
    return left
