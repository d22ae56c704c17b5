"""What is said of a model class that vLLM would not take."""

from __future__ import annotations

from typing import Any

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight.interface import fault, lacking, outdated


class Good:
    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None: ...
    def embed_input_ids(self, input_ids: Any) -> None: ...
    def forward(self, input_ids: Any, positions: Any, intermediate_tensors: Any = None) -> None: ...
    def compute_logits(self, hidden_states: Any) -> None: ...
    def load_weights(self, weights: Any) -> None: ...


class TakesAnything(Good):
    def __init__(self, **everything: Any) -> None: ...
    def forward(self, **everything: Any) -> None: ...  # type: ignore[override]


class NoLogits(Good):
    compute_logits = None  # type: ignore[assignment]


class Renamed(Good):
    embed_input_ids = None  # type: ignore[assignment]

    def get_input_embeddings(self, input_ids: Any) -> None: ...


class OtherForward(Good):
    def forward(self, ids: Any, positions: Any) -> None: ...  # type: ignore[override]


class Of2024:
    def __init__(self, config: Any, cache_config: Any = None, quant_config: Any = None) -> None: ...
    def forward(self, input_ids: Any, positions: Any, kv_caches: Any, attn_metadata: Any) -> None: ...
    def compute_logits(self, hidden_states: Any, sampling_metadata: Any) -> None: ...
    def load_weights(self, weights: Any) -> None: ...


class HalfPorted(Good):
    def forward(self, input_ids: Any, positions: Any, kv_caches: Any, attn_metadata: Any) -> None: ...  # type: ignore[override]


class Tolerant(Good):
    def forward(self, input_ids: Any, positions: Any, kv_caches: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("model", "pooling", "missing"),
    [
        pytest.param(Good, False, [], id="all is there"),
        pytest.param(TakesAnything, False, [], id="keywords are passed on"),
        pytest.param(
            NoLogits, False, ["compute_logits(hidden_states)"], id="a class that generates has logits"
        ),
        pytest.param(NoLogits, True, [], id="a pooling class has none"),
        pytest.param(
            Renamed,
            False,
            ["embed_input_ids(input_ids) (its old name get_input_embeddings is not called)"],
            id="the old name of a method",
        ),
        pytest.param(
            OtherForward,
            False,
            ["forward(input_ids, positions, …): input_ids cannot be passed by name"],
            id="arguments are passed by name",
        ),
    ],
)
def test_what_is_missing(model: type, pooling: bool, missing: list[str]) -> None:
    assert list(lacking(model, pooling=pooling)) == missing


@pytest.mark.parametrize(
    ("model", "signs"),
    [
        pytest.param(Good, [], id="of today"),
        pytest.param(
            Of2024,
            [
                "__init__(config)",
                "__init__(cache_config)",
                "__init__(quant_config)",
                "forward(kv_caches)",
                "forward(attn_metadata)",
            ],
            id="of 2024",
        ),
        pytest.param(HalfPorted, ["forward(kv_caches)", "forward(attn_metadata)"], id="half ported"),
        pytest.param(Tolerant, [], id="an old argument that nobody has to give"),
    ],
)
def test_the_interface_of_2024_is_known_by_its_arguments(model: type, signs: list[str]) -> None:
    assert outdated(model) == signs


def test_an_outdated_class_is_told_how_to_be_ported() -> None:
    told = fault("MyOpt", Of2024, pooling=False)
    assert told
    assert told.reason == reasons.INTERFACE_OUTDATED
    assert told.message.startswith(
        "MyOpt (images.runtime.tests.preflight.test_interface.Of2024) has the interface"
    )
    assert told.message.endswith(reasons.REASONS[reasons.INTERFACE_OUTDATED].cure)


def test_a_good_class_has_no_fault() -> None:
    assert fault("MyOpt", Good, pooling=False) is None
