"""What the page on GitOps gives to Argo CD: a health check, run by Lua, and what to ignore."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from bowsprit.api.crd import crd
from bowsprit.api.v1alpha1 import GROUP, KIND, Status
from bowsprit.status.compute import compute
from docs.pages import ROOT, blocks
from tests.unit.status.examples import LIFE

PAGE = ROOT / "docs/how-to/deploy-with-flux-or-argo-cd.md"
HEALTHY, PROGRESSING, DEGRADED, SUSPENDED = "Healthy", "Progressing", "Degraded", "Suspended"
NOT_SEEN = "No operator has looked at this generation yet."


def block(word: str) -> dict[str, Any]:
    (text,) = (each.text for each in blocks(PAGE) if each.language == "yaml" and word in each.words)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def health(model: dict[str, Any]) -> tuple[str, str]:
    """As Argo CD does: the object is the global `obj`, and the script returns a table. It has no libraries
    but the basic one."""
    script = block("file=argocd-cm.yaml")["data"][f"resource.customizations.health.{GROUP}_{KIND}"]
    lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
    for library in ("os", "io", "package", "require", "debug", "string", "table", "math", "python"):
        lua.globals()[library] = None
    lua.globals().obj = lua.table_from(model, recursive=True)
    answer = lua.execute(script)
    return answer["status"], answer["message"]


def model(moment: str, generation: int | None = None) -> dict[str, Any]:
    observed = LIFE[moment]
    return {
        "metadata": {"generation": observed.generation if generation is None else generation},
        "spec": {},
        "status": compute(observed, None, "2026-11-30T12:00:00Z"),
    }


def phase_of(moment: str) -> str:
    return str(model(moment)["status"]["phase"])


def test_there_is_a_moment_of_each_phase() -> None:
    assert {phase_of(moment) for moment in LIFE} == set(Status)


HEALTH = {
    Status.READY: HEALTHY,
    Status.FAILED: DEGRADED,
    Status.SUSPENDED: SUSPENDED,
}
"""Of a model that has come to rest; all else is on its way."""


@pytest.mark.parametrize("moment", LIFE)
def test_each_moment_has_its_health_and_says_why(moment: str) -> None:
    seen = model(moment)
    conditions = {each["type"]: each for each in seen["status"]["conditions"]}
    status, message = health(seen)
    if conditions["Reconciling"]["status"] == "True":
        assert (status, message) == (PROGRESSING, conditions["Reconciling"]["message"])
    else:
        assert status == HEALTH[Status(seen["status"]["phase"])]
        assert message == conditions["Stalled" if status == DEGRADED else "Ready"]["message"]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="none"),
        pytest.param({"observedGeneration": -1}, id="the schema's"),
        pytest.param({"observedGeneration": 1}, id="without conditions"),
        pytest.param(model("ready")["status"], id="of an older generation"),
    ],
)
def test_a_status_that_is_not_of_this_generation_is_progress(status: dict[str, Any] | None) -> None:
    seen = {"metadata": {"generation": 2}, "spec": {}, **({"status": status} if status else {})}
    assert health(seen) == (PROGRESSING, NOT_SEEN)


def test_conditions_that_are_missing_do_not_break_it() -> None:
    seen = {"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": [{"type": "A"}]}}
    assert health(seen) == (PROGRESSING, NOT_SEEN)


def test_what_is_ignored_is_where_a_scaler_writes() -> None:
    spec = block("argo")["spec"]
    (ignored,) = spec["ignoreDifferences"]
    definition = crd()["spec"]
    assert (ignored["group"], ignored["kind"]) == (definition["group"], definition["names"]["kind"])
    scale = definition["versions"][0]["subresources"]["scale"]
    assert ignored["jsonPointers"] == [scale["specReplicasPath"].replace(".", "/")]
    assert "RespectIgnoreDifferences=true" in spec["syncPolicy"]["syncOptions"]
