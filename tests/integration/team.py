"""Who works in Git with real Flux, and looks at what comes of it: Flux follows as the how-to page says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bowsprit.api.crd import crd_yaml
from docs.pages import ROOT, blocks
from e2e.cluster.flux import FluxCluster
from tests.integration import preflights
from tests.integration.arena import Arena, Json
from tests.integration.preflights import required
from tests.integration.repository import Repository, served

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


def llama(arena: Arena, version: int, **spec: Any) -> Json:
    """A model with a plugin, as it stands in Git."""
    return arena.manifest("llama", **required(plugins=[{"image": f"{HUB}:{version}"}], **spec))


@contextmanager
def flux_cluster() -> Iterator[FluxCluster]:
    """With the operator's rights, and without the definition of its kind."""
    with FluxCluster() as cluster:
        cluster.kubectl("apply", "-f", str(ROOT / "operator" / "rbac.yaml"))
        for stage in preflights.STAGES:
            cluster.apply(stage)
        yield cluster


@contextmanager
def team_on(cluster: FluxCluster, directory: Path) -> Iterator[Team]:
    """A team with a namespace and a node of its own; the operator runs already."""
    namespace = f"team-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    arena = Arena(cluster, namespace, directory)
    nodes = arena.nodes(1, gpus=2)
    arena.operator("operator-a", "--resync=5")
    try:
        with served(directory / "git") as repository:
            yield Team(arena, repository)
            cluster.kubectl("delete", "-n", "flux-system", "kustomization", "models", "--timeout=120s")
            cluster.kubectl("delete", "-n", "flux-system", "gitrepository", "models", "--timeout=120s")
    finally:
        arena.stop_operators()
        cluster.kubectl("delete", "node", *nodes, "--wait=false")
