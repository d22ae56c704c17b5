"""What vLLM itself built in preflight stands in place of what the shapes add up to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.facts.model import MeasuredWeights, ModelFacts
from bowsprit.plan.memory import GIB, stages
from bowsprit.plan.wish import Demand
from tests.unit.render.examples import FACTS

LAYERS = len(FACTS.layers)
MEASURED = MeasuredWeights(2, (GIB,) * LAYERS, embedding=2 * GIB, head=3 * GIB, other=5 * GIB, tied=False)


def weights(facts: ModelFacts, tensor: int, *partition: int) -> list[float]:
    return [stage.weights_gib for stage in stages(facts, Demand(), tensor, partition, 81920)]


@pytest.mark.parametrize(
    ("changes", "partition", "wanted"),
    [
        ({}, (80,), [80 + 2 + 3 + 5]),
        ({}, (40, 40), [40 + 2 + 5, 40 + 3]),
        ({"rank_bytes": GIB}, (40, 40), [40 + 2 + 5, 40 + 3 + 1]),
        ({"head_on_every_stage": True}, (40, 40), [40 + 2 + 3 + 5, 40 + 3]),
    ],
    ids=["one stage", "two stages", "a table of positions on every rank", "a head on every stage"],
)
def test_stages_weigh_what_was_measured(
    changes: dict[str, int], partition: tuple[int, ...], wanted: list[float]
) -> None:
    facts = replace(FACTS, measured=(MEASURED,), **changes)  # type: ignore[arg-type]
    assert weights(facts, 2, *partition) == pytest.approx(wanted, abs=0.01)


def test_a_tied_head_is_on_the_last_stage_too() -> None:
    tied = replace(MEASURED, head=MEASURED.embedding, tied=True)
    facts = replace(FACTS, measured=(tied,))
    assert weights(facts, 2, 80) == pytest.approx([80 + 2 + 5], abs=0.01)
    assert weights(facts, 2, 40, 40) == pytest.approx([40 + 2 + 5, 40 + 2], abs=0.01)


def test_a_size_that_was_not_measured_is_reckoned() -> None:
    facts = replace(FACTS, measured=(MEASURED,))
    assert weights(facts, 4, 80) == weights(FACTS, 4, 80)
