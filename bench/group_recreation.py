"""From the death of a rank to the group being recreated, beside a plain LeaderWorkerSet with the same pods.

A worker of a group that serves is killed by SIGKILL; the time ends when every rank has a new pod. In turns,
in one cluster; the reference is the LeaderWorkerSet that Bowsprit renders, less gates and owner. It is for
the kubelet to notice (it looks once a second) and for LeaderWorkerSet to mend; its pods end as they ask to,
with a pre-stop that nobody needs any more, and Bowsprit cuts that short. Target: under 5 s.
"""

from __future__ import annotations

import time

from bench.figure import Figure
from bench.real import START_S, Json, SeenPods, is_possible, is_ready, listed, plain, real_stage
from e2e.cluster.waiting import wait_until
from e2e.tests import ranks
from e2e.tests.stage import Stage

ROUNDS = 2
RANKS = 2
TARGET_S = 5.0
OURS, REFERENCE = "ours", "plain"
GROUP = "leaderworkerset.sigs.k8s.io/name"
RANK = "leaderworkerset.sigs.k8s.io/worker-index"


def measure() -> list[Figure]:
    if not is_possible():
        return []
    ours, reference = [], []
    with real_stage() as stage:
        stage.model(OURS, preflight="Skip", parallelism={"pipeline": RANKS, "gpusPerPod": 1})
        for _ in range(ROUNDS):
            stage.wait_ready(OURS, START_S)
            (made,) = stage.get("leaderworkersets")["items"]
            ours.append(_recreated(stage, made["metadata"]["name"]))
            _suspend(stage, True)
            stage.apply(_reference(made))
            reference.append(_recreated(stage, REFERENCE))
            stage.kubectl("delete", "leaderworkerset", REFERENCE)
            _wait_gone(stage)
            _suspend(stage, False)
    slowest = max(ours)
    return [
        Figure(
            f"from the death of one of {RANKS} ranks to the group being recreated",
            slowest,
            f"s at most of {ROUNDS} ({listed(ours)})",
            f"under {TARGET_S:g} s",
            slowest < TARGET_S,
            f"plain LeaderWorkerSet with the same pods: {listed(reference)}",
        )
    ]


def _recreated(stage: Stage, group: str) -> float:
    """Seconds from the death of the last rank of a group that serves to new pods for all ranks."""
    seen = SeenPods(stage)
    wait_until("the group to serve", lambda: sum(map(is_ready, _pods(seen, group))) == RANKS, START_S)
    before = {pod["metadata"]["uid"] for pod in _pods(seen, group)}
    (worker,) = (pod for pod in _pods(seen, group) if pod["metadata"]["labels"][RANK] == str(RANKS - 1))
    start = time.monotonic()
    ranks.kill(stage, worker["metadata"]["name"])
    wait_until("new pods", lambda: _are_new(_pods(seen, group), before), START_S)
    new = {pod["metadata"]["uid"] for pod in _pods(seen, group)}
    seconds = max(_first_seen(seen, uid) for uid in new) - start
    print(f"    {group}: {seconds:.1f} s", flush=True)
    return seconds


def _first_seen(seen: SeenPods, uid: str) -> float:
    return seen.wait("a pod", lambda pod: bool(pod["metadata"]["uid"] == uid))


def _are_new(pods: list[Json], before: set[str]) -> bool:
    """Every rank has a pod of its own, none of them an old one or one on its way out."""
    uids = {pod["metadata"]["uid"] for pod in pods}
    leaving = any("deletionTimestamp" in pod["metadata"] for pod in pods)
    return len(uids) == RANKS and not uids & before and not leaving


def _pods(seen: SeenPods, group: str) -> list[Json]:
    return [pod for pod in seen.there if pod["metadata"].get("labels", {}).get(GROUP) == group]


def _reference(made: Json) -> Json:
    """The LeaderWorkerSet that Bowsprit has made, as anybody might."""
    spec = made["spec"]["leaderWorkerTemplate"]
    templates = {role: plain(spec[role], {"app": REFERENCE}) for role in ("leaderTemplate", "workerTemplate")}
    return {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "metadata": {"name": REFERENCE},
        "spec": {**made["spec"], "leaderWorkerTemplate": {**spec, **templates}},
    }


def _suspend(stage: Stage, suspend: bool) -> None:
    stage.patch(OURS, {"suspend": suspend})
    if suspend:
        _wait_gone(stage)


def _wait_gone(stage: Stage) -> None:
    """Until no group has pods, and the GPUs are free."""
    stage.kubectl("wait", "pods", "--selector", GROUP, "--for=delete", f"--timeout={START_S:.0f}s")
