"""Real Flux brings models from a Git repository into a real control plane; KWOK plays nodes and preflights.

Flux takes minutes to build: `make flux`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.pages import blocks
from e2e.cluster.build import are_built
from e2e.cluster.flux import FluxCluster
from e2e.cluster.programs import FLUX
from tests.integration.arena import MDEP
from tests.integration.life import revision_of, selected_revision
from tests.integration.preflights import BROKEN, end, jobs, report, required
from tests.integration.team import HUB, PAGE, Team, flux_cluster, llama, team_on

pytestmark = [
    pytest.mark.integration,
    pytest.mark.flux,
    pytest.mark.skipif(not are_built(FLUX), reason="Flux is not built; `make flux` builds it once"),
]


@pytest.fixture(scope="module")
def flux() -> Iterator[FluxCluster]:
    with flux_cluster() as cluster:
        yield cluster


@pytest.fixture
def team(flux: FluxCluster, tmp_path: Path) -> Iterator[Team]:
    with team_on(flux, tmp_path) as found:
        yield found


def test_a_push_is_proven_and_rolled_out_a_broken_one_changes_nothing_and_is_reverted(team: Team) -> None:
    arena = team.arena
    commit = team.begin("models.yaml", llama=llama(arena, 1))
    end(arena, "llama", report())
    team.wait_applied(commit)
    assert arena.is_ready("llama")
    (first,) = arena.pods("llama")

    broken = team.push("A plugin that cannot be imported", llama=llama(arena, 2))
    end(arena, "llama", BROKEN, 1)
    said = team.wait_failed(broken)
    assert f"stalled resources: [ModelDeployment/{arena.namespace}/llama status: 'Failed']" in said
    stalled = arena.condition("llama", "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "PluginImportFailed")
    assert "The plugin is at fault: my_opt: No module named 'x'" in stalled["message"]
    assert arena.condition("llama", "Available")["status"] == "True"
    assert [pod["metadata"]["uid"] for pod in arena.pods("llama")] == [first["metadata"]["uid"]]

    team.wait_applied(team.revert())
    assert arena.is_ready("llama")
    assert [pod["metadata"]["uid"] for pod in arena.pods("llama")] == [first["metadata"]["uid"]]
    assert not jobs(arena), "what was proven once is not proven again"

    commit = team.push("The plugin, mended", llama=llama(arena, 3))
    end(arena, "llama", report())
    team.wait_applied(commit)
    (pod,) = arena.pods("llama")
    assert revision_of(pod) == selected_revision(arena, "llama") != revision_of(first)
    images = [each["image"] for each in pod["spec"]["initContainers"] if each["name"] == "plugin-0"]
    assert images == [f"{HUB}:3"]


def test_applied_again_nothing_changes_and_taken_out_of_git_nothing_is_left(team: Team) -> None:
    arena = team.arena
    commit = team.begin("models.yaml", llama=llama(arena, 1), other=arena.manifest("other", **required()))
    for name in ("llama", "other"):
        end(arena, name, report())
    team.wait_applied(commit)
    arena.wait("the Jobs to be cleared away", lambda: not jobs(arena))
    before = [arena.get(name) for name in ("llama", "other")]
    team.apply_again()
    assert [arena.get(name) for name in ("llama", "other")] == before

    team.wait_applied(team.push("One model less", llama=None))
    arena.wait("its pods to go", lambda: not arena.pods("llama"))
    assert [each["metadata"]["name"] for each in arena.api.get(MDEP.format(arena.namespace))["items"]] == [
        "other"
    ]
    assert arena.get("other")["spec"] == before[1]["spec"]
    assert len(arena.pods("other")) == 1


def test_a_model_that_waits_for_gpus_is_not_done_and_one_that_is_suspended_is(team: Team) -> None:
    arena = team.arena
    commit = team.begin("suspendable.yaml", llama=llama(arena, 1, replicas=3))
    end(arena, "llama", report())
    arena.wait_reason("llama", "GPUsReserved", "WaitingForGPUs")
    arena.wait("Flux to wait", lambda: "Running health checks" in team.progress(commit))
    arena.nodes(1, gpus=1)
    team.wait_applied(commit)
    team.wait_applied(team.push("Not needed now", llama=llama(arena, 1, replicas=3, suspend=True)))
    assert arena.status("llama")["phase"] == "Suspended"
    assert not arena.pods("llama")


def test_the_page_shows_what_flux_takes(flux: FluxCluster) -> None:
    for block in blocks(PAGE):
        if "flux" in block.words:
            flux.kubectl("apply", "--dry-run=server", "-f", "-", input=block.text)
