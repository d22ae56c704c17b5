"""What a group of two ranks on two nodes goes through, one fault after the other.

After each the model is back by itself, with the same words as before, and a condition has said what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from e2e.cluster.control_plane import KubectlFailed
from e2e.cluster.real import cgroups
from e2e.local.cluster import LocalCluster
from e2e.tests import ranks
from e2e.tests.clients import clients
from e2e.tests.record import recording
from e2e.tests.silence import silent
from e2e.tests.stage import PROMPT, Stage

pytestmark = pytest.mark.e2e

NAME = "faulty"
HEAD, WORKER = 0, 1
START_SECONDS = 600
IMPATIENT = {
    "spec": {
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 5,
            }
            for state in ("not-ready", "unreachable")
        ]
    }
}
"""Pods leave a silent node after five seconds; by default it has five minutes to come back."""


@pytest.fixture(scope="module")
def group(stage: Stage) -> Iterator[str]:
    """A group that serves; what it says."""
    if len(stage.target.nodes()) < 2:
        pytest.skip("needs two nodes")
    parallelism = {"pipeline": 2, "gpusPerPod": 1}
    stage.model(NAME, preflight="Skip", parallelism=parallelism, template=IMPATIENT)
    stage.wait_ready(NAME, START_SECONDS)
    yield stage.complete(NAME, PROMPT)
    stage.remove(NAME)


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What Ready said after each death of the group."""
    return []


def rank(stage: Stage, number: int) -> str:
    """The pod of a rank."""
    label = "leaderworkerset.sigs.k8s.io/worker-index"
    (found,) = (each for each in stage.engines(NAME) if each["metadata"]["labels"][label] == str(number))
    return str(found["metadata"]["name"])


def node(stage: Stage, number: int) -> str:
    return str(stage.get("pod", rank(stage, number))["spec"]["nodeName"])


def are_new(stage: Stage, before: dict[str, int]) -> bool:
    now = stage.lives(NAME)
    return len(now) == len(before) and not now.keys() & before.keys()


FAULTS: dict[str, tuple[int, Callable[[Stage, str], None], str]] = {
    "a worker is killed": (WORKER, ranks.kill, "was ended by SIGKILL (exit code 137)"),
    "a worker ends with exit code 0": (WORKER, ranks.end_with_code_0, "ended with exit code 0"),
    "the head is killed": (HEAD, ranks.kill, "was ended by SIGKILL (exit code 137)"),
}


def test_containers_outlive_a_restart_of_their_runtime(
    stage: Stage, group: str, local_cluster: LocalCluster
) -> None:
    before, runtime = stage.lives(NAME), f"containerd-{node(stage, WORKER)}"
    local_cluster.kill_program(runtime)
    local_cluster.start_program(runtime)
    stage.wait("the node to run commands again", lambda: runs_commands(stage, rank(stage, WORKER)))
    stage.wait_ready(NAME)
    assert stage.complete(NAME, PROMPT) == group
    assert stage.lives(NAME) == before


def runs_commands(stage: Stage, pod: str) -> bool:
    """Whether the kubelet reaches the containers of a pod."""
    try:
        stage.execute(pod, "true")
    except KubectlFailed:
        return False
    return True


@pytest.mark.parametrize("fault", FAULTS)
def test_a_group_that_loses_a_rank_starts_anew_and_is_not_ready_until_it_serves(
    stage: Stage, group: str, fault: str, told: list[str]
) -> None:
    number, strike, words = FAULTS[fault]
    before, hit = stage.lives(NAME), rank(stage, number)
    with recording(stage) as record:
        with clients(stage, NAME, ["short", "long"], long_tokens=400):
            strike(stage, hit)
            stage.wait("all ranks to be new", lambda: are_new(stage, before), 120)
        stage.wait_ready(NAME, START_SECONDS)
        record.catch_up(NAME)
    told.append(record.messages(NAME))
    assert f"pod {hit}: container engine {words}" in told[-1]
    assert "Its pods are replaced" in told[-1]
    record.assert_not_ready_while_a_rank_is_away(NAME, ranks=2)
    assert stage.complete(NAME, PROMPT) == group
    assert nothing_runs_of(before)


def test_a_group_that_went_on_dying_was_started_after_a_pause(told: list[str]) -> None:
    if len(told) < 2:
        pytest.skip("the group has not died twice")
    assert "2 deaths in a row: it starts again 10 s after the last." in told[1]


def test_a_group_leaves_a_node_that_does_not_answer_and_is_back_when_it_does(
    stage: Stage, group: str
) -> None:
    before, lost = stage.lives(NAME), node(stage, WORKER)
    with recording(stage) as record:
        with silent(lost):
            stage.wait("the pods to be taken off the node", lambda: are_gone(stage, before), 240)
            waiting = stage.condition(NAME, "Ready")
        stage.wait_ready(NAME, START_SECONDS)
        record.catch_up(NAME)
    assert lost in waiting["message"]
    record.assert_not_ready_while_a_rank_is_away(NAME, ranks=2)
    assert stage.complete(NAME, PROMPT) == group
    assert len(stage.lives(NAME)) == 2
    stage.wait("what ran on the node meanwhile to end", lambda: nothing_runs_of(before))


def are_gone(stage: Stage, before: dict[str, int]) -> bool:
    """Also those on their way out."""
    items = stage.get("pods")["items"]
    return not before.keys() & {each["metadata"]["uid"] for each in items}


def nothing_runs_of(pods: dict[str, int]) -> bool:
    return not any(cgroups.processes_of_pod(uid) for uid in pods)
