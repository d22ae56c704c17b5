"""The figures at /metrics are those of the last pass, and of nothing that is gone."""

from __future__ import annotations

import pytest

from bowsprit.controller.metrics import Metrics
from bowsprit.plan.fleet import Fleet, GpuNode, LeftOut
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ModelPlan, Plan
from tests.unit.controller.objects import ONE, PRODUCT, replica

FLEET = Fleet(
    nodes=(GpuNode("n1", "nvidia.com/gpu", PRODUCT, 81920, False, 4, 1),),
    left_out=(
        LeftOut("n2", "Cordoned", "it is cordoned", 8, PRODUCT),
        LeftOut("n3", "NoDevices", "", 2, None),
    ),
)
KEY = ModelKey("team", "llama")
PLACED = Plan((ModelPlan(KEY, wanted=2, replicas=(replica(0, ONE, "n1"),), refusal=None),))


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics()
    made.show(PLACED, FLEET, {KEY: 1})
    return made


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("bowsprit_gpus", {"product": PRODUCT, "state": "free"}, 1),
        ("bowsprit_gpus", {"product": PRODUCT, "state": "held"}, 3),
        ("bowsprit_gpus", {"product": PRODUCT, "state": "left_out"}, 8),
        ("bowsprit_gpus", {"product": "unknown", "state": "left_out"}, 2),
        ("bowsprit_model_gpus_wanted", {"namespace": "team", "model": "llama"}, 1),
        ("bowsprit_model_gpus_short", {"namespace": "team", "model": "llama"}, 0),
        ("bowsprit_model_replicas", {"namespace": "team", "model": "llama", "state": "wanted"}, 2),
        ("bowsprit_model_replicas", {"namespace": "team", "model": "llama", "state": "placed"}, 1),
        ("bowsprit_model_replicas", {"namespace": "team", "model": "llama", "state": "ready"}, 1),
    ],
)
def test_the_last_pass_is_shown(metrics: Metrics, name: str, labels: dict[str, str], expected: float) -> None:
    assert metrics.registry.get_sample_value(name, labels) == expected


def test_what_is_gone_is_not_shown(metrics: Metrics) -> None:
    metrics.show(Plan(()), Fleet(()), {})
    for name in ("bowsprit_gpus", "bowsprit_model_gpus_wanted", "bowsprit_model_replicas"):
        family = next(each for each in metrics.registry.collect() if each.name == name)
        assert family.samples == []
