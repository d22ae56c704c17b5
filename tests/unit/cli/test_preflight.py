"""`bowsprit preflight`: the operator's Job by hand, its report in words, and nothing left behind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.cli import preflighting
from bowsprit.cli.preflighting import BROKEN, FINE, NO_VERDICT, Outcome, Terms, outcome_parts, prove_one
from bowsprit.cli.screen import plain
from bowsprit.cluster.resources import JOBS, PODS, Resource
from bowsprit.facts.report import parse_report
from bowsprit.plan.key import ModelKey
from tests.unit.cli.workspace import Workspace, model
from tests.unit.status.preflight_pods import PODS as MOMENTS

KEY = ModelKey("chat", "llama")


class Cluster:
    """A Job whose pod goes through the given moments, one each time that somebody looks."""

    def __init__(self, *moments: str, ends: str = "") -> None:
        self._moments = list(moments)
        self._ends = ends
        self.created: list[dict[str, Any]] = []
        self.deleted: list[str] = []

    async def create(self, resource: Resource, namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
        assert resource is JOBS
        self.created.append(manifest)
        return {"metadata": {"name": f"{manifest['metadata']['generateName']}x", "uid": "uid-job"}}

    async def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        over = self._ends and len(self._moments) <= 1
        return {"status": {"conditions": [{"type": self._ends, "status": "True"}] if over else []}}

    async def pages(self, resource: Resource, **_: Any) -> AsyncIterator[dict[str, Any]]:
        assert resource is PODS
        moment = self._moments.pop(0) if len(self._moments) > 1 else self._moments[0]
        yield {"items": [MOMENTS[moment]] if moment else []}

    async def delete(self, resource: Resource, namespace: str, name: str, *, uid: str) -> None:
        self.deleted.append(name)


async def proven(cluster: Cluster) -> tuple[Outcome, list[str]]:
    told: list[str] = []
    deployment = ModelDeployment.model_validate(model("llama", "chat"))
    terms = Terms("runtime:1", time_limit_s=45, look_s=0)
    outcome = await prove_one(cluster, deployment, terms, told.append)  # type: ignore[arg-type]
    return outcome, told


async def test_it_waits_for_the_report_and_takes_the_job_away() -> None:
    cluster = Cluster("", "created", "running", "fine")
    outcome, told = await proven(cluster)
    assert (outcome.exit_code, cluster.deleted) == (FINE, ["llama-preflight-x"])
    assert told[0] == "chat/llama: Job llama-preflight-x runs in namespace chat"
    assert any("Preflight runs in pod" in line for line in told)


async def test_the_job_has_no_owner_is_not_the_operators_and_goes_by_itself_when_it_is_left() -> None:
    cluster = Cluster("fine")
    await proven(cluster)
    (job,) = cluster.created
    assert job["metadata"].keys() == {"generateName", "namespace"}
    assert job["spec"]["ttlSecondsAfterFinished"] > 0


async def test_the_time_limit_is_the_callers() -> None:
    cluster = Cluster("fine")
    await proven(cluster)
    (engine,) = cluster.created[0]["spec"]["template"]["spec"]["containers"]
    (request,) = (each["value"] for each in engine["env"] if each["name"] == "BOWSPRIT_PREFLIGHT")
    assert json.loads(request)["timeLimitSeconds"] == 45


async def test_what_holds_it_up_is_told_once() -> None:
    cluster = Cluster("a plugin image does not exist", "the same, between two tries", "fine")
    _, told = await proven(cluster)
    assert sum("cannot be pulled" in line for line in told) == 1


async def test_a_verdict_of_broken_is_an_answer() -> None:
    outcome, _ = await proven(Cluster("running", "a broken plugin"))
    assert outcome.exit_code == BROKEN


async def test_a_job_that_ends_without_a_report_is_none() -> None:
    cluster = Cluster("running", "killed for its memory", ends="Failed")
    outcome, _ = await proven(cluster)
    assert outcome.exit_code == NO_VERDICT
    assert "memory limit" in outcome.text
    assert cluster.deleted


async def test_whatever_goes_wrong_the_job_is_taken_away() -> None:
    class Breaking(Cluster):
        async def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
            raise ConnectionError

    cluster = Breaking("running")
    with pytest.raises(ConnectionError):
        await proven(cluster)
    assert cluster.deleted


def words(moment: str) -> str:
    text = MOMENTS[moment]["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    return "".join(plain(part) for part in outcome_parts(Outcome(KEY, parse_report(text), text)))


def test_a_report_in_words() -> None:
    assert words("two faults").splitlines() == [
        "chat/llama: Broken",
        "  Engine: vllm 0.32.0, python 3.12.3, torch 2.9.0",
        "  Architecture: MyOptForCausalLM",
        "  Plugin my-opt 1.0: MyOptForCausalLM",
        "  EntryPointMissing (spec): my-opt has no entry point 'opt'; did you mean my_opt?",
        "    Set `plugins[].entryPoints` to names that are there; the message lists them.",
        "  PluginDependencyMissing (plugin): my-opt asks for einops",
        "    Add its wheel to the plugin image, or the package to the engine image.",
    ]
    assert "Warning: my-opt asks for torch<2.9" in words("fine, with warnings")


def test_the_command_prints_json_and_ends_with_the_worst(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(moment: str) -> Outcome:
        text = MOMENTS[moment]["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
        return Outcome(KEY, parse_report(text), text)

    answers = [outcome("fine"), outcome("a broken plugin")]
    monkeypatch.setattr(preflighting, "prove", lambda *_: answers)
    done = workspace.run("preflight", "-f", "@models.yaml", "-o", "json")
    assert done.exit_code == BROKEN
    assert [each["report"]["verdict"] for each in json.loads(done.stdout)["models"]] == ["Ok", "Broken"]
