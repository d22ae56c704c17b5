from __future__ import annotations

from typing import Any

import pytest

from bowsprit.render.budgets import (
    PROBE_PERIOD_SECONDS,
    STARTUP_PERIOD_SECONDS,
    Stopping,
    progress_seconds,
    ready_seconds,
    startup_failures,
    stopping,
)
from tests.unit.render.examples import spec


@pytest.mark.parametrize(
    ("weight_bytes", "seconds"),
    [(0, 600), (100 * 2**20, 601), (140 * 10**9, 1936), (None, 7200)],
    ids=["no weights", "100 MiB", "70B in bfloat16", "unknown"],
)
def test_start_up_grows_with_the_weights(weight_bytes: int | None, seconds: int) -> None:
    assert ready_seconds(weight_bytes) == seconds
    assert startup_failures(weight_bytes) * 2 >= seconds + 60, "vLLM has to give up before the kubelet does"


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ({}, Stopping(drain_seconds=60, grace_seconds=90)),
        ({"terminationGracePeriodSeconds": 330}, Stopping(300, 330)),
        ({"terminationGracePeriodSeconds": 5}, Stopping(0, 5)),
    ],
    ids=["by default", "a long grace period", "one too short to drain in"],
)
def test_draining_fits_into_the_grace_period(template: dict[str, Any], wanted: Stopping) -> None:
    assert stopping(spec(template={"spec": template})) == wanted


@pytest.mark.parametrize("weight_bytes", [0, 140 * 10**9, None], ids=["none", "70B", "unknown"])
def test_the_deadline_of_a_rollout_leaves_time_for_one_whole_start(weight_bytes: int | None) -> None:
    """And for what comes before it."""
    one_start = startup_failures(weight_bytes) * STARTUP_PERIOD_SECONDS + PROBE_PERIOD_SECONDS
    assert progress_seconds(spec(), weight_bytes) >= one_start + 300
    assert progress_seconds(spec(rollout={"progressDeadlineSeconds": 30}), weight_bytes) == 30
