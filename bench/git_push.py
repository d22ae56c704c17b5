"""From a commit that Flux has fetched to the preflight Job of it: what Flux takes, and what Bowsprit adds.

Real source-controller, kustomize-controller and control plane; KWOK ends the preflights, and each commit is
rolled out before the next. Target: Bowsprit adds less than 2 s to Flux's own interval.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.figure import Figure
from bench.observe import PATIENCE_S
from e2e.cluster.api import Api
from e2e.cluster.build import are_built
from e2e.cluster.programs import FLUX
from e2e.cluster.waiting import wait_until
from tests.integration.preflights import EXIT, REPORT, report
from tests.integration.team import SOURCE, Team, flux_cluster, llama, team_on

ROUNDS = 10
TARGET_S = 2.0
ANSWERED = {"template": {"metadata": {"annotations": {REPORT: report(), EXIT: "0"}}}}
"""A preflight that ends at once, and well."""

Json = dict[str, Any]


def measure() -> list[Figure]:
    if not are_built(FLUX):
        print("    left out: Flux is not built; `make flux` builds it once")
        return []
    with (
        tempfile.TemporaryDirectory() as folder,
        flux_cluster() as cluster,
        team_on(cluster, Path(folder)) as team,
    ):
        team.wait_applied(team.begin("models.yaml", llama=llama(team.arena, 0, **ANSWERED)))
        rounds = [_round(team, number) for number in range(1, ROUNDS + 1)]
    flux, bowsprit = zip(*rounds, strict=True)
    beside = f"Flux, fetched to applied: median {median(flux):.2f} s, after an interval of 60 s"
    return [
        Figure("applied by Flux to preflight Job, median", median(bowsprit), "s", "", None, beside),
        Figure(
            f"the same, slowest of {ROUNDS} commits",
            max(bowsprit),
            "s",
            f"< {TARGET_S:.0f} s",
            max(bowsprit) < TARGET_S,
        ),
    ]


def _round(team: Team, number: int) -> tuple[float, float]:
    """Seconds from fetched to applied, and from applied to the Job."""
    arena = team.arena
    generation = arena.get("llama")["metadata"]["generation"]
    own = f"/namespaces/{arena.namespace}"
    artifact = _artifact(arena.api.get(SOURCE))
    fetched = Seen(arena.api, SOURCE.rpartition("/")[0], lambda each: _artifact(each) != artifact)
    applied = Seen(
        arena.api,
        f"/apis/bowsprit.dev/v1alpha1{own}/modeldeployments",
        lambda each: each["metadata"]["generation"] > generation,
    )
    jobs = Seen(arena.api, f"/apis/batch/v1{own}/jobs", lambda each: True)
    commit = team.push(f"Version {number}", llama=llama(arena, number, **ANSWERED))
    times = [each.when() for each in (fetched, applied, jobs)]
    team.wait_applied(commit)
    return times[1] - times[0], times[2] - times[1]


def _artifact(repository: Json) -> str:
    return str(repository.get("status", {}).get("artifact", {}).get("revision", ""))


class Seen:
    """When a watch has first shown an object that is so."""

    def __init__(self, api: Api, path: str, is_so: Callable[[Json], bool]) -> None:
        version = api.get(path)["metadata"]["resourceVersion"]
        self._events = api.watch(f"{path}?watch=1&resourceVersion={version}&timeoutSeconds={PATIENCE_S:.0f}")
        self._is_so = is_so
        self._at: float | None = None
        threading.Thread(target=self._follow, daemon=True).start()

    def when(self) -> float:
        """By time.monotonic."""
        wait_until("what is measured to happen", lambda: self._at is not None, PATIENCE_S)
        assert self._at is not None
        return self._at

    def _follow(self) -> None:
        for event in self._events:
            if self._is_so(event["object"]):
                self._at = time.monotonic()
                return
