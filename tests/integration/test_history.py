"""`bowsprit history` and `bowsprit diff` on a real cluster: after a rollout, and beside a broken spec."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from e2e.cluster.control_plane import ControlPlane
from tests.integration import preflights
from tests.integration.arena import Arena
from tests.integration.life import TWO_PODS, engine, revisions, target
from tests.integration.preflights import BROKEN, DIGEST, end, report, required

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def _stages(api_installed: ControlPlane) -> None:
    for stage in preflights.STAGES:
        api_installed.apply(stage)


def bowsprit(arena: Arena, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bowsprit.cli.main", *arguments, "-n", arena.namespace]
    environment = {**os.environ, "KUBECONFIG": str(arena.cluster.kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_past_of_a_model_and_what_has_changed(stage: Arena) -> None:
    stage.nodes(1)
    stage.apply(stage.manifest("chat", **required(**TWO_PODS)))
    end(stage, "chat", report())
    stage.wait_ready("chat")
    first = target(stage, "chat")
    stage.patch("chat", {"engine": engine("--enable-prefix-caching", image=preflights.ENGINE)})
    end(stage, "chat", report())
    stage.wait_ready("chat")
    second = target(stage, "chat")
    stage.wait("only the new one to stand", lambda: len(stage.status("chat")["plan"]["replicas"]) == 1)

    data = json.loads(bowsprit(stage, "history", "chat", "-o", "json").stdout)
    old, new = data["revisions"]
    assert [(each["number"], each["hash"]) for each in (old, new)] == [(1, first), (2, second)]
    assert set(revisions(stage, "chat")) == {first, second}, "those of StatefulSets are no revisions of ours"
    assert (old["serving"], old["target"], old["layouts"]) == (False, False, [])
    assert (new["serving"], new["target"]) == (True, True)
    assert [(each["pipeline"], each["replicas"]) for each in new["layouts"]] == [(2, 1)]
    assert new["images"]["engine"] == f"registry.example.com/vllm@{DIGEST}"

    told = bowsprit(stage, "diff", "chat", "1", second[:5])
    assert (told.returncode, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[0] == f"--- {stage.namespace}/chat revision 1 ({first})"
    assert "+    - --enable-prefix-caching" in lines

    stage.patch("chat", {"architecture": {"override": "MyOptForCausalLM"}})
    end(stage, "chat", BROKEN, 1)
    stage.wait_reason("chat", "Stalled", "PluginImportFailed")
    shown = bowsprit(stage, "history", "chat").stdout
    assert len(shown.splitlines()) == 5, "two revisions, and a word on what is asked for"
    assert f"bowsprit explain chat -n {stage.namespace}" in shown


def test_what_is_not_there(stage: Arena) -> None:
    stage.model("chat", suspend=True)
    unknown = bowsprit(stage, "history", "chit")
    assert unknown.returncode == 2
    key = f"{stage.namespace}/chat"
    assert f"no ModelDeployment {stage.namespace}/chit; there are: {key}" in unknown.stderr
    beyond = bowsprit(stage, "diff", "chat", "8", "9")
    assert beyond.returncode == 2
    assert len(beyond.stderr.splitlines()) == 2
    assert f"{key}: no revision 9; there are: " in beyond.stderr
