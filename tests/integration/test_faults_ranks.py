"""A rank that ends: LeaderWorkerSet and the operator both mend the group, and neither hinders the other."""

from __future__ import annotations

import json

import pytest

from tests.integration.arena import Arena
from tests.integration.life import TWO_PODS, uids
from tests.integration.referee import Referee

pytestmark = pytest.mark.integration


def end(arena: Arena, role: str) -> None:
    """The container of a rank has ended, and the kubelet has started it again."""
    (pod,) = (each for each in arena.pods("group") if each["metadata"]["labels"]["bowsprit.dev/role"] == role)
    engine = {
        "name": "engine",
        "image": "engine",
        "imageID": "",
        "ready": True,
        "restartCount": 1,
        "state": {"running": {"startedAt": "2026-11-30T12:00:00Z"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "Error"}},
    }
    patch = json.dumps({"status": {"containerStatuses": [engine]}})
    arena.kubectl(
        "patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch
    )


def test_a_group_that_loses_a_rank_is_replaced_and_waits_when_it_dies_again(arena: Arena) -> None:
    nodes = arena.nodes(2, gpus=1)
    arena.operator()
    arena.model("group", **TWO_PODS)
    with Referee(arena.cluster, arena.namespace, dict.fromkeys(nodes, 1)).watching():
        for role, said in (
            ("worker", "container engine was ended by SIGKILL (exit code 137)"),
            ("head", "2 deaths in a row: it starts again 10 s after the last."),
        ):
            arena.wait_ready("group")
            before = uids(arena, "group")
            end(arena, role)
            arena.wait("new pods", lambda old=before: _are_new(uids(arena, "group"), old))  # type: ignore[misc]
            arena.wait(f"Ready to say {said}", lambda said=said: _says(arena, said))  # type: ignore[misc]
        arena.wait_ready("group")
    assert arena.nodes_of("group") == dict.fromkeys(nodes, 1)


def _are_new(now: set[str], before: set[str]) -> bool:
    return len(now) == 2 and not now & before


def _says(arena: Arena, words: str) -> bool:
    return words in arena.condition("group", "Ready").get("message", "")
