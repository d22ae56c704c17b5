"""The planner against an exact solver that models pods on nodes directly (the bench runs 300 of these)."""

from __future__ import annotations

import pytest

from bench.clusters import case
from bench.exact import optimum, score_of
from bench.packing_quality import faults
from bowsprit.plan.planner import plan


@pytest.mark.parametrize("number", range(16), ids=lambda number: case(number).name)
def test_the_plan_is_valid_and_scores_as_the_optimum(number):
    one = case(number)
    answer = plan(one.wishes, one.fleet)
    assert faults(one, answer) == []
    assert score_of(one, answer) == optimum(one)
