"""One word proves which class ran, in whichever of the two packagings it came."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.models import tiny

pytestmark = pytest.mark.vllm

MY_OPT = {"architectures": ["MyOptForCausalLM"], "my_opt_token_id": tiny.AHOY_ID}
ALWAYS = tiny.AHOY * 24


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write("opt", tmp_path_factory.mktemp("opt"))


def texts(answers: list[dict[str, Any]]) -> list[str]:
    return [answer["text"] for answer in answers]


def test_a_general_plugin_says_its_word_on_every_layout(complete: Callable[..., Any], model: Path) -> None:
    stock, plugin, parallel = complete(
        model,
        [
            {"enforce_eager": True},
            {"enforce_eager": True, "hf_overrides": MY_OPT},
            {"hf_overrides": MY_OPT, "tensor_parallel_size": 2, "pipeline_parallel_size": 2},
        ],
        loads="my_opt",
    )
    assert tiny.AHOY not in "".join(texts(stock))
    assert texts(plugin) == texts(parallel) == [ALWAYS, ALWAYS]


def test_the_packaging_of_pull_request_7438_brings_the_same_class(
    complete: Callable[..., Any], model: Path
) -> None:
    (answers,) = complete(
        model,
        [{"hf_overrides": MY_OPT, "enforce_eager": True}],
        loads="bowsprit_model_architectures,my_opt_7438",
    )
    assert texts(answers) == [ALWAYS, ALWAYS]
