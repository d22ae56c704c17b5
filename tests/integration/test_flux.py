"""Real Flux brings models from a Git repository into a real control plane; KWOK plays nodes and preflights.

What the how-to page on GitOps shows is what is applied here. Flux takes minutes to build: `make flux`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.api.crd import crd_yaml
from docs.pages import ROOT, blocks
from e2e.cluster.build import are_built
from e2e.cluster.flux import FluxCluster
from e2e.cluster.programs import FLUX
from tests.integration import preflights
from tests.integration.arena import MDEP, Arena, Json
from tests.integration.life import revision_of, selected_revision
from tests.integration.preflights import BROKEN, end, jobs, report, required
from tests.integration.repository import Repository, served

pytestmark = [
    pytest.mark.integration,
    pytest.mark.flux,
    pytest.mark.skipif(not are_built(FLUX), reason="Flux is not built; `make flux` builds it once"),
]

PAGE = ROOT / "docs/how-to/deploy-with-flux-or-argo-cd.md"
SOURCE = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/models"
KUSTOMIZATION = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/models"
HUB = "registry.example.com/my-opt"


def shown(name: str) -> list[Json]:
    """Manifests of the page."""
    (text,) = (each.text for each in blocks(PAGE) if each.file == name)
    return list(yaml.safe_load_all(text))


class Team:
    """Who works in Git and looks at what Flux makes of it."""

    def __init__(self, arena: Arena, repository: Repository) -> None:
        self.arena = arena
        self._repository = repository

    def begin(self, page: str, **models: Json) -> str:
        """A first commit, with the definition of the kind beside its objects, and Flux follows, as that block
        of the page says. Returns the commit once Flux has fetched it."""
        definition = {"models/crd.yaml": crd_yaml()}
        commit = self._repository.push("Models", {**definition, **_files(models)})
        manifests = {each["kind"]: each for each in (*shown("models.yaml"), *shown(page))}
        manifests["GitRepository"]["spec"]["url"] = self._repository.url
        self.arena.cluster.apply(*manifests.values())
        return self._fetched(commit)

    def push(self, message: str, **models: Json | None) -> str:
        """Models by name; None takes one away. Returns the commit once Flux has fetched it."""
        commit = self._repository.push(message, _files(models))
        self._ask("gitrepository", commit)
        return self._fetched(commit)

    def revert(self) -> str:
        commit = self._repository.revert()
        self._ask("gitrepository", commit)
        return self._fetched(commit)

    def wait_applied(self, commit: str) -> None:
        """The Kustomization is Ready: all is applied, and all models are well."""
        self.arena.wait(
            f"{commit} to be Ready", lambda: self._condition("Ready", commit)["status"] == "True", 120
        )

    def wait_failed(self, commit: str) -> str:
        """Returns what the Kustomization says."""
        self.arena.wait(
            f"{commit} to fail", lambda: self._condition("Ready", commit)["status"] == "False", 120
        )
        return str(self._condition("Ready", commit)["message"])

    def progress(self, commit: str) -> str:
        return str(self._condition("Reconciling", commit)["message"])

    def apply_again(self) -> None:
        """As `flux reconcile kustomization` does; returns when it is Ready."""
        token = uuid.uuid4().hex
        self._ask("kustomization", token)
        self.arena.wait(
            "it to be applied again", lambda: self._status().get("lastHandledReconcileAt") == token, 120
        )
        self.arena.wait("it to be Ready", lambda: self._condition("Ready", "")["status"] == "True", 120)

    def _ask(self, kind: str, token: str) -> None:
        asked = f"reconcile.fluxcd.io/requestedAt={token}"
        self.arena.kubectl("annotate", "-n", "flux-system", "--overwrite", kind, "models", asked)

    def _fetched(self, commit: str) -> str:
        self.arena.wait(f"{commit} to be fetched", lambda: commit in self._artifact())
        return commit

    def _artifact(self) -> str:
        artifact = self.arena.api.get(SOURCE).get("status", {}).get("artifact", {})
        return str(artifact.get("revision", ""))

    def _status(self) -> Json:
        return dict(self.arena.api.get(KUSTOMIZATION).get("status", {}))

    def _condition(self, kind: str, commit: str) -> Json:
        """A condition of the Kustomization, once that is at the commit."""
        status = self._status()
        about = status.get("conditions", []) if commit in status.get("lastAttemptedRevision", "") else []
        return next((dict(each) for each in about if each["type"] == kind), {"status": "", "message": ""})


def _files(models: Mapping[str, Json | None]) -> dict[str, str | None]:
    return {f"models/{name}.yaml": model and yaml.safe_dump(model) for name, model in models.items()}


@pytest.fixture(scope="module")
def flux() -> Iterator[FluxCluster]:
    """With the operator's rights, and without the definition of its kind."""
    with FluxCluster() as cluster:
        cluster.kubectl("apply", "-f", str(ROOT / "operator" / "rbac.yaml"))
        for stage in preflights.STAGES:
            cluster.apply(stage)
        yield cluster


@pytest.fixture
def team(flux: FluxCluster, tmp_path: Path) -> Iterator[Team]:
    """A team with a namespace and a node of its own; the operator runs already."""
    namespace = f"team-{uuid.uuid4().hex[:8]}"
    flux.kubectl("create", "namespace", namespace)
    arena = Arena(flux, namespace, tmp_path)
    nodes = arena.nodes(1, gpus=2)
    arena.operator("operator-a", "--resync=5")
    try:
        with served(tmp_path / "git") as repository:
            yield Team(arena, repository)
            flux.kubectl("delete", "-n", "flux-system", "kustomization", "models", "--timeout=120s")
            flux.kubectl("delete", "-n", "flux-system", "gitrepository", "models", "--timeout=120s")
    finally:
        arena.stop_operators()
        flux.kubectl("delete", "node", *nodes, "--wait=false")


def llama(arena: Arena, version: int, **spec: Any) -> Json:
    """A model with a plugin, as it stands in Git."""
    return arena.manifest("llama", **required(plugins=[{"image": f"{HUB}:{version}"}], **spec))


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
