"""An operator that starts, starts again, or has nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.cluster import access
from e2e.cluster.control_plane import ControlPlane
from tests.integration.arena import MDEP, Arena, Json, OperatorProcess
from tests.integration.life import REVISIONS, TWO_PODS, WORKLOADS, fetch, metric, never_ready, revisions

pytestmark = pytest.mark.integration


@pytest.fixture
def powerless(api_installed: ControlPlane, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Credentials that may do nothing yet, and the name of their account."""
    name = f"powerless-{tmp_path.name[-8:]}".lower().replace("_", "-").rstrip("-")
    api_installed.kubectl("-n", access.NAMESPACE, "create", "serviceaccount", name)
    token = api_installed.kubectl("-n", access.NAMESPACE, "create", "token", name)
    config = yaml.safe_load(api_installed.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token.strip()}
    path = tmp_path / "powerless-kubeconfig"
    path.write_text(yaml.safe_dump(config))
    yield path, name
    api_installed.kubectl("-n", access.NAMESPACE, "delete", "serviceaccount", name)


def test_an_operator_is_not_ready_before_its_caches_are_filled(
    powerless: tuple[Path, str], api_installed: ControlPlane, tmp_path: Path, arena: Arena
) -> None:
    kubeconfig, account = powerless
    operator = OperatorProcess(kubeconfig, tmp_path / "operator.log", "powerless", arena.namespace)
    arena.logs.append(operator.log)
    operator.start()
    try:
        assert fetch(operator, "/readyz") == (503, "the caches are still being filled")
        assert fetch(operator, "/healthz") == (200, "ok")
        who = f"--serviceaccount={access.NAMESPACE}:{account}"
        api_installed.kubectl("create", "clusterrolebinding", account, f"--clusterrole={access.NAME}", who)
        arena.wait("the operator to be ready", lambda: fetch(operator, "/readyz") == (200, "ok"))
    finally:
        api_installed.kubectl("delete", "clusterrolebinding", account, "--ignore-not-found")
        operator.stop()


def versions(arena: Arena) -> dict[str, Any]:
    """resourceVersions of all models, what belongs to them, and their pods."""
    paths = [
        MDEP.format(arena.namespace),
        REVISIONS.format(arena.namespace),
        *(path.format(arena.namespace) for path in WORKLOADS),
        *(f"/api/v1/namespaces/{arena.namespace}/{kind}" for kind in ("pods", "services", "events")),
    ]
    items = [item for path in paths for item in arena.api.get(path)["items"]]
    return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in items}


def many_models(arena: Arena) -> list[str]:
    arena.nodes(2, gpus=4)
    names = []
    for number, spec in enumerate(({}, {}, TWO_PODS, {"replicas": 2}, never_ready())):
        names.append(f"model-{number}")
        arena.model(names[-1], **spec)
    arena.model("waiting", replicas=9)
    arena.wait_ready(*names[:-1])
    arena.wait_reason(names[-1], "Ready", "ReplicasNotReady")
    arena.wait_reason("waiting", "GPUsReserved", "WaitingForGPUs")
    return names


def wait_quiet(arena: Arena, operator: OperatorProcess) -> Json:
    """Returns the versions once they have not changed from one resync to another."""
    last: Json = {}

    def is_quiet() -> bool:
        nonlocal last
        wait_resyncs(arena, operator, 2)
        before, last = last, versions(arena)
        return before == last

    arena.wait("quiet", is_quiet)
    return last


def wait_resyncs(arena: Arena, operator: OperatorProcess, number: int) -> None:
    seen = metric(operator, "bowsprit_resyncs_total")
    arena.wait("resyncs", lambda: metric(operator, "bowsprit_resyncs_total") >= seen + number)


def test_nothing_is_written_when_nothing_changes(arena: Arena) -> None:
    operator = arena.operator("resyncing", "--resync=1")
    many_models(arena)
    before = wait_quiet(arena, operator)
    wait_resyncs(arena, operator, 3)
    assert versions(arena) == before


def test_a_restarted_operator_finds_everything_as_it_would_leave_it(arena: Arena) -> None:
    operator = arena.operator("restarting", "--resync=1")
    names = many_models(arena)
    before = wait_quiet(arena, operator)
    operator.kill()
    operator.start()
    arena.wait("the restart", lambda: metric(operator, "bowsprit_leader") == 1)
    arena.wait("a pass", lambda: metric(operator, "bowsprit_reconcile_duration_seconds_count") > 0)
    # It works: a change is acted upon, and nothing else is touched.
    arena.patch(names[0], {"replicas": 0})
    arena.wait("its pods to go", lambda: not arena.pods(names[0]))
    after = versions(arena)
    touched = {uid for uid, version in before.items() if after.get(uid) != version}
    mine = {
        item["metadata"]["uid"]
        for path in (MDEP, *WORKLOADS, "/api/v1/namespaces/{}/pods", "/api/v1/namespaces/{}/services")
        for item in arena.api.get(path.format(arena.namespace))["items"]
        if item["metadata"]["name"].startswith(names[0]) or item["metadata"]["name"].startswith("waiting")
    }
    assert touched <= mine | (before.keys() - after.keys())
    assert len(revisions(arena, names[0])) == 1
