"""`bowsprit history` and `bowsprit diff`: what the cluster keeps of a model's past."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from bowsprit.cli import history as rooms
from bowsprit.cli.history import History, history_of
from bowsprit.cli.problems import BadInput
from bowsprit.cluster.errors import NotFound
from bowsprit.cluster.resources import MODEL_DEPLOYMENTS, Resource
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import Layout, PodPlan, ReplicaPlan
from bowsprit.render.owner import Owner
from bowsprit.render.revision import revision_of, to_controller_revision
from bowsprit.status.replicas import replica_to_status
from tests.unit.cli.workspace import A100, Workspace, model
from tests.unit.render.examples import FACTS, spec

KEY = ModelKey("chat", "llama")
OWNER = Owner("llama", "chat", "uid-llama")
HUB = "registry.example.com"
ENGINE, PLUGIN = f"{HUB}/vllm@sha256:{'5a' * 32}", f"{HUB}/my-opt@sha256:{'b7' * 32}"
IMAGES = {"runtime": f"{HUB}/runtime:1", "engine": ENGINE}

PLAIN = revision_of(spec(), FACTS, "llama", IMAGES, 1)
WITH_PLUGIN = revision_of(
    spec(
        plugins=[{"image": f"{HUB}/my-opt:2"}, {"requirement": "uneven-llama==1.0"}],
        architecture={"override": "MyOpt"},
    ),
    FACTS,
    "llama",
    {**IMAGES, "plugin-0": PLUGIN},
    2,
)


def replicas(revision: str, *indices: int) -> list[dict[str, Any]]:
    layout = Layout(A100, 1, 2, 2, (40, 40))
    planned = [ReplicaPlan(index, layout, (PodPlan("gpu-1", 2),)) for index in indices]
    return [replica_to_status(each, revision) for each in planned]


class Cluster:
    """Answers as the API server does of one namespace."""

    def __init__(self, status: dict[str, Any] | None, *manifests: dict[str, Any]) -> None:
        self._model: dict[str, Any] = {**model("llama", "chat"), "status": status}
        self._model["metadata"]["uid"] = OWNER.uid
        self._manifests = manifests

    async def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        assert resource is MODEL_DEPLOYMENTS
        if (namespace, name) != KEY:
            raise NotFound(f'modeldeployments "{name}" not found', 404)
        return self._model

    async def pages(
        self, resource: Resource, *, namespace: str, selector: str | None
    ) -> AsyncIterator[dict[str, Any]]:
        if resource is MODEL_DEPLOYMENTS:
            yield {"items": [self._model] if namespace == "chat" else []}
            return
        assert (namespace, selector) == ("chat", "bowsprit.dev/model=llama")
        for each in self._manifests:
            yield {"items": [each]}


def kept(*revisions: Any) -> list[dict[str, Any]]:
    found = [to_controller_revision(each, OWNER) for each in revisions]
    for each in found:
        each["metadata"]["creationTimestamp"] = f"2026-11-30T12:0{each['revision']}:00Z"
    return found


async def read(status: dict[str, Any] | None, *revisions: Any) -> History:
    client: Any = Cluster(status, *kept(*revisions))
    return await history_of(client, KEY)


@pytest.fixture
async def rolling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second revision starts beside the first."""
    status = {
        "revisions": {"serving": PLAIN.hash, "target": WITH_PLUGIN.hash},
        "plan": {"replicas": [*replicas(WITH_PLUGIN.hash, 0), *replicas(PLAIN.hash, 0, 1)]},
    }
    found = await read(status, WITH_PLUGIN, PLAIN)
    monkeypatch.setattr(rooms, "read_history", lambda *_: found)


@pytest.mark.usefixtures("rolling")
def test_a_line_for_each_revision_the_oldest_first(workspace: Workspace) -> None:
    shown = workspace.run("history", "llama", "-n", "chat").stdout
    head, first, second = (line.split("   ") for line in shown.splitlines())
    facts = first[-1]
    assert re.fullmatch("[0-9a-f]{10}", facts)
    assert [cell.strip() for cell in head if cell] == [
        *(
            "REVISION",
            "HASH",
            "CREATED",
            "STATE",
            "LAYOUTS",
            "MODEL",
            "OVERRIDE",
            "PLUGINS",
            "ENGINE",
            "FACTS",
        )
    ]
    assert [cell.strip() for cell in first if cell] == [
        *("1", PLAIN.hash, "2026-11-30T12:01:00Z", "serving", "2 x tp1/pp2"),
        *("hf://meta-llama/Llama-3.1-70B", "-", "-", f"{HUB}/vllm@sha256:5a5a5a5a5a5a", facts),
    ]
    assert [cell.strip() for cell in second if cell] == [
        *("2", WITH_PLUGIN.hash, "2026-11-30T12:02:00Z", "asked for", "1 x tp1/pp2"),
        *("hf://meta-llama/Llama-3.1-70B", "MyOpt"),
        *(f"{HUB}/my-opt@sha256:b7b7b7b7b7b7, uneven-llama==1.0", f"{HUB}/vllm@sha256:5a5a5a5a5a5a", facts),
    ]


@pytest.mark.usefixtures("rolling")
@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_json_and_yaml_hold_everything(workspace: Workspace, form: str, load: Any) -> None:
    data = load(workspace.run("history", "llama", "-n", "chat", "-o", form).stdout)
    assert (data["namespace"], data["name"]) == KEY
    first, second = data["revisions"]
    assert list(first) == [
        *("number", "hash", "created", "serving", "target", "failure", "layouts", "images"),
        *("factsDigest", "facts", "weightBytes", "renderVersion", "spec"),
    ]
    assert (first["serving"], first["target"]) == (True, False)
    assert (second["serving"], second["target"]) == (False, True)
    assert second["images"] == {**IMAGES, "plugin-0": PLUGIN}
    assert second["spec"] == WITH_PLUGIN.data["spec"]
    (layout,) = first["layouts"]
    assert (layout["product"], layout["pipeline"], layout["replicas"]) == (A100, 2, 2)


async def test_one_that_serves_and_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, workspace: Workspace
) -> None:
    found = await read({"revisions": {"serving": PLAIN.hash, "target": PLAIN.hash}}, PLAIN)
    monkeypatch.setattr(rooms, "read_history", lambda *_: found)
    shown = workspace.run("history", "llama", "-n", "chat").stdout
    assert "   serving, asked for   -         hf://" in shown
    assert "not there yet" not in shown


async def test_one_that_was_given_up_says_why(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    failed = {"revision": WITH_PLUGIN.hash, "reason": "CrashLooping", "message": "exit code 1", "time": "t"}
    revisions = {"serving": PLAIN.hash, "target": WITH_PLUGIN.hash, "failed": failed}
    found = await read({"revisions": revisions}, PLAIN, WITH_PLUGIN)
    monkeypatch.setattr(rooms, "read_history", lambda *_: found)
    first, second = workspace.run("history", "llama", "-n", "chat").stdout.splitlines()[1:]
    assert "   serving   " in first
    assert "   asked for, failed: CrashLooping   " in second
    data = json.loads(workspace.run("history", "llama", "-n", "chat", "-o", "json").stdout)
    assert [each["failure"] for each in data["revisions"]] == [None, failed]


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"revisions": {"serving": PLAIN.hash}},
        {"revisions": "edited"},
        {"revisions": {"target": 7, "failed": "edited"}},
    ],
)
async def test_what_is_asked_for_and_not_there_yet_is_said(
    status: Any, monkeypatch: pytest.MonkeyPatch, workspace: Workspace
) -> None:
    found = await read(status, PLAIN)
    monkeypatch.setattr(rooms, "read_history", lambda *_: found)
    shown = workspace.run("history", "llama", "-n", "chat").stdout
    assert shown.endswith("is not there yet; why: bowsprit explain llama -n chat\n")


@pytest.mark.usefixtures("rolling")
def test_a_diff_is_unified_and_plain(workspace: Workspace) -> None:
    done = workspace.run("diff", "llama", "1", WITH_PLUGIN.hash[:6], "-n", "chat")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        f"--- chat/llama revision 1 ({PLAIN.hash})",
        f"+++ chat/llama revision 2 ({WITH_PLUGIN.hash})",
    ]
    assert "+  architecture:" in lines
    assert "+    override: MyOpt" in lines
    assert f"+  - image: {HUB}/my-opt:2" in lines
    assert f"+  plugin-0: {PLUGIN}" in lines
    assert not [line for line in lines[2:] if line.startswith("-")]
    assert "\x1b" not in done.stdout


@pytest.mark.usefixtures("rolling")
def test_a_revision_does_not_differ_from_itself(workspace: Workspace) -> None:
    done = workspace.run("diff", "llama", "2", WITH_PLUGIN.hash, "-n", "chat")
    assert (done.exit_code, done.stdout) == (0, "")


@pytest.mark.usefixtures("rolling")
def test_unknown_revisions_are_told_at_once_with_those_that_there_are(workspace: Workspace) -> None:
    done = workspace.run("diff", "llama", "3", "feed", "-n", "chat")
    assert (done.exit_code, done.stdout) == (2, "")
    there = f"there are: 1 ({PLAIN.hash}), 2 ({WITH_PLUGIN.hash})"
    assert done.stderr.splitlines() == [
        f"the live cluster: chat/llama: no revision {called}; {there}" for called in ("3", "feed")
    ]


async def test_an_unknown_model_is_told_with_those_of_its_namespace() -> None:
    client: Any = Cluster(None)
    with pytest.raises(BadInput, match="no ModelDeployment chat/lama; there are: chat/llama; give the name"):
        await history_of(client, ModelKey("chat", "lama"))
    with pytest.raises(BadInput, match="no ModelDeployment default/llama; there are: none"):
        await history_of(client, ModelKey("default", "llama"))
