"""The operator's own endpoints while it acts: metrics, health and readiness."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.arena import PCIE, Arena, OperatorProcess
from tests.integration.life import TWO_PODS, fetch, metric

pytestmark = pytest.mark.integration

NOT_BASE = re.compile(r"_(?:ms|milliseconds|minutes|hours|kb|mb|gb|mib|gib|percent)(?:_|$)")


def test_metrics_keep_the_conventions_of_prometheus(stage: Arena, operator: OperatorProcess) -> None:
    stage.nodes(1, gpus=3)
    stage.model("chat", **TWO_PODS)
    stage.wait_ready("chat")
    stage.model("waiting", **TWO_PODS)
    stage.wait_reason("waiting", "GPUsReserved", "WaitingForGPUs")
    status, text = fetch(operator, "/metrics")
    assert status == 200
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    for family in families:
        # (The client library's own families, such as process_*, keep the conventions, too.)
        assert family.documentation.strip(), family.name
        assert family.type != "unknown", family.name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
        assert not NOT_BASE.search(family.name), family.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds"), family.name
        if family.type == "counter":
            samples = {sample.name for sample in family.samples}
            assert samples <= {f"{family.name}_total", f"{family.name}_created"}, samples
        else:
            assert not family.name.endswith("_total"), family.name
    ours = [name for name in names if name.startswith("bowsprit_")]
    assert len(ours) >= 10


def test_metrics_tell_what_the_cluster_has(stage: Arena, operator: OperatorProcess) -> None:
    product = f"{PCIE}-{stage.namespace}"[:63]
    stage.nodes(1, gpus=3, product=product)
    stage.model("chat", **TWO_PODS)
    stage.wait_ready("chat")
    stage.model("waiting", **TWO_PODS)
    stage.wait_reason("waiting", "GPUsReserved", "WaitingForGPUs")

    def gpus(state: str) -> float:
        return metric(operator, "bowsprit_gpus", product=product, state=state)

    def of_model(name: str, model: str, **labels: str) -> float:
        return metric(operator, name, namespace=stage.namespace, model=model, **labels)

    stage.wait("the GPUs", lambda: (gpus("held"), gpus("free")) == (2, 1))
    assert of_model("bowsprit_model_gpus_wanted", "waiting") == 2
    assert of_model("bowsprit_model_gpus_short", "waiting") == 1
    stage.wait("a replica", lambda: of_model("bowsprit_model_replicas", "chat", state="ready") == 1)
    assert of_model("bowsprit_model_replicas", "chat", state="wanted") == 1
    assert metric(operator, "bowsprit_leader") == 1
    assert metric(operator, "bowsprit_reconcile_duration_seconds_count") > 0
    assert metric(operator, "bowsprit_plan_duration_seconds_count") > 0

    stage.kubectl("delete", "mdep", "chat", "waiting")
    gone = f'model="waiting",namespace="{stage.namespace}"'
    stage.wait("deleted models to have no figures", lambda: gone not in fetch(operator, "/metrics")[1])


def test_a_model_that_cannot_be_planned_wants_nothing(stage: Arena, operator: OperatorProcess) -> None:
    stage.nodes(1, gpus=1)
    stage.model("holder")
    stage.wait_ready("holder")
    stage.model("chat")
    labels = {"namespace": stage.namespace, "model": "chat"}
    stage.wait("its want", lambda: metric(operator, "bowsprit_model_gpus_short", **labels) == 1)
    stage.model("chat", config="{}")
    stage.wait("no want", lambda: metric(operator, "bowsprit_model_gpus_short", **labels) == 0)
    assert metric(operator, "bowsprit_model_gpus_wanted", **labels) == 0


def test_a_follower_is_ready_and_does_not_act(stage: Arena, operator: OperatorProcess) -> None:
    assert fetch(operator, "/healthz") == (200, "ok")
    stage.wait("the leader to be ready", lambda: fetch(operator, "/readyz")[0] == 200)
    follower = stage.operator("follower", f"--lease-name={operator.lease}")
    stage.wait("the follower to be ready", lambda: fetch(follower, "/readyz") == (200, "ok"))
    assert fetch(follower, "/healthz") == (200, "ok")
    assert metric(follower, "bowsprit_leader") == 0
    assert metric(follower, "bowsprit_plan_duration_seconds_count") == 0
    assert follower.stop() == 0
