"""Argo CD's own comparison of Git and cluster, in both of its ways, on models that live: there is no drift.

Its health check is in tests/docs/test_argo_cd.py.
"""

from __future__ import annotations

import copy
import json
import subprocess
from typing import Any

import pytest
import yaml

from docs.pages import ROOT, blocks
from e2e.cluster.build import are_built, ensure_programs
from e2e.cluster.programs import ARGO_CD
from tests.integration.arena import Arena, Json
from tests.integration.life import engine

pytestmark = [
    pytest.mark.integration,
    pytest.mark.flux,
    pytest.mark.skipif(
        not are_built([ARGO_CD]), reason="Argo CD's comparison is not built; `make flux` builds it once"
    ),
]

PAGE = ROOT / "docs/how-to/deploy-with-flux-or-argo-cd.md"
SERVER_SIDE = ("--server-side", "--field-manager=argocd-controller", "--force-conflicts")


class Application:
    """A model that Argo CD manages."""

    def __init__(self, arena: Arena, *options: str) -> None:
        """options: of `kubectl apply`, by which Argo CD syncs."""
        self._arena = arena
        self._options = options
        self._wanted: Json = {}

    def sync(self, **spec: Any) -> None:
        """Git says so now; returns when the model is Ready and at rest."""
        self._wanted = self._arena.manifest("chat", **spec)
        tracking = f"models:bowsprit.dev/ModelDeployment:{self._arena.namespace}/chat"
        self._wanted["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
        self._apply()
        self.wait_at_rest()

    def wait_at_rest(self) -> None:
        if self._wanted["spec"].get("suspend"):
            self._arena.wait_reason("chat", "Ready", "Suspended")
        else:
            self._arena.wait_ready("chat")
        self._arena.wait("rest", lambda: self._arena.condition("chat", "Reconciling")["status"] == "False")

    def drift(self, *ignored: str) -> tuple[bool, bool]:
        """Whether Argo CD sees it out of sync: by its own comparison, and by a dry run of the API server.

        `ignored` are JSON pointers of ignoreDifferences.
        """
        config, live, predicted = (_without(each, ignored) for each in (self._wanted, *self._seen()))
        asked = ({"config": config, "live": live}, {"config": config, "live": live, "predicted": predicted})
        program = ensure_programs([ARGO_CD]).binary("argocd-diff")
        text = "\n".join(map(json.dumps, asked))
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
        client, server = (json.loads(line)["modified"] for line in done.stdout.split("\n") if line)
        return client, server

    def _seen(self) -> tuple[Json, Json]:
        """The live object, and what applying would leave of it, at one moment."""
        while True:
            live = self._arena.get("chat")
            predicted = self._apply(*SERVER_SIDE, "--dry-run=server", "-o", "json", "--show-managed-fields")
            if self._arena.get("chat") == live:
                return live, json.loads(predicted)

    def _apply(self, *options: str) -> str:
        text = yaml.safe_dump(self._wanted)
        return self._arena.kubectl("apply", *(options or self._options), "-f", "-", input=text)


def _without(model: Json, pointers: tuple[str, ...]) -> Json:
    found = copy.deepcopy(model)
    for pointer in pointers:
        *parents, leaf = pointer.strip("/").split("/")
        section = found
        for parent in parents:
            section = section[parent]
        section.pop(leaf, None)
    return found


@pytest.fixture(params=[(), SERVER_SIDE], ids=["synced client-side", "synced server-side"])
def application(request: pytest.FixtureRequest, stage: Arena) -> Application:
    stage.nodes(1)
    stage.model("chat", suspend=True)
    stage.kubectl("delete", "mdep", "chat", "--wait=true")
    return Application(stage, *request.param)


def test_a_model_is_in_sync_through_all_its_life(application: Application, stage: Arena) -> None:
    for spec in (
        {},
        {"engine": engine("--enable-prefix-caching")},
        {"engine": engine("--enable-prefix-caching"), "suspend": True},
        {"engine": engine("--enable-prefix-caching")},
    ):
        application.sync(**spec)
        assert application.drift() == (False, False)
    stage.kubectl("scale", "mdep", "chat", "--replicas=2")
    application.wait_at_rest()
    assert application.drift() == (False, False), "Git says nothing of replicas"


def test_replicas_in_git_are_drift_once_scaled_and_none_when_the_client_ignores_them_as_the_page_says(
    application: Application, stage: Arena
) -> None:
    (snippet,) = (yaml.safe_load(each.text) for each in blocks(PAGE) if "argo" in each.words)
    (ignored,) = snippet["spec"]["ignoreDifferences"]
    application.sync(replicas=1)
    stage.kubectl("scale", "mdep", "chat", "--replicas=2")
    application.wait_at_rest()
    assert application.drift() == (True, True)
    server_side = True  # the dry run would raise metadata.generation, and nobody ignores that
    assert application.drift(*ignored["jsonPointers"]) == (False, server_side)
    assert application.drift(*ignored["jsonPointers"], "/metadata/generation") == (False, False)
