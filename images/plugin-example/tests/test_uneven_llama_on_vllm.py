"""The padded Llama says what vLLM's own says, on 1, 2 and 3 ranks and with pipeline stages.

4 heads on 3 GPUs are the case that Bowsprit was first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from e2e.models import tiny

pytestmark = pytest.mark.vllm

TOLERANCE = 1e-4
"""On float32 logits whose standard deviation is 3: the ranks add up in another order. 1e-5 was seen."""
UNEVEN = {"hf_overrides": {"architectures": ["UnevenLlamaForCausalLM"]}}
STOCK: dict[str, Any] = {"enforce_eager": True}
LAYOUTS: dict[str, dict[str, Any]] = {
    "one rank": {"enforce_eager": True},
    "two ranks, which divide the model": {"enforce_eager": True, "tensor_parallel_size": 2},
    "three ranks, which divide nothing": {"enforce_eager": True, "tensor_parallel_size": 3},
    # vLLM 0.32 for CPUs has no pipeline stages without compilation.
    "two stages of three ranks": {"tensor_parallel_size": 3, "pipeline_parallel_size": 2},
}


@pytest.fixture(scope="module")
def answers(
    complete: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[dict[str, Any]]]:
    """By layout; "stock" is vLLM's own class on one rank."""
    model = tiny.write("llama", tmp_path_factory.mktemp("llama"))
    options = [STOCK, *({**UNEVEN, **layout} for layout in LAYOUTS.values())]
    return dict(zip(["stock", *LAYOUTS], complete(model, options, loads="uneven_llama"), strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_greedy_tokens(layout: str, answers: dict[str, list[dict[str, Any]]]) -> None:
    assert [answer["tokens"] for answer in answers[layout]] == [
        answer["tokens"] for answer in answers["stock"]
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_logits(layout: str, answers: dict[str, list[dict[str, Any]]]) -> None:
    for answer, stock in zip(answers[layout], answers["stock"], strict=True):
        np.testing.assert_allclose(answer["logits"], stock["logits"], rtol=0, atol=TOLERANCE)


def test_what_need_not_be_padded_is_the_same_to_the_last_bit(
    answers: dict[str, list[dict[str, Any]]],
) -> None:
    assert answers["one rank"] == answers["stock"]


def test_no_padded_word_is_a_token(answers: dict[str, list[dict[str, Any]]]) -> None:
    for layout in LAYOUTS:
        for answer in answers[layout]:
            assert {len(logits) for logits in answer["logits"]} == {len(tiny.VOCABULARY)}
