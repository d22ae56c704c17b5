"""What a config that gives no facts is answered with: the field, what was found, what is expected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bowsprit.api.reasons import Reason
from bowsprit.facts.config import facts_from_config
from bowsprit.facts.model import FactsError, ModelFacts

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}


def refusal(config: str | bytes, **more: Any) -> FactsError:
    error = facts_from_config(config, **more)
    assert isinstance(error, FactsError)
    return error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "not valid JSON", id="nothing at all"),
        pytest.param("{", "not valid JSON", id="half an object"),
        pytest.param(b"\xff\xfe\x00", "not valid JSON", id="bytes that are no text"),
        pytest.param("[1, 2]", "expected a JSON object", id="a list"),
        pytest.param("null", "expected a JSON object", id="null"),
        pytest.param('{"a": NaN}', "not a finite number", id="NaN"),
        pytest.param('{"a": -Infinity}', "not a finite number", id="minus infinity"),
        pytest.param('{"a": 1e999}', "not a finite number", id="a float that overflows"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "not valid JSON", id="an integer of 5,000 digits"),
        pytest.param('{"a": 1, "a": 2}', '"a" stands twice', id="a key that stands twice"),
        pytest.param("[" * 100_000, "nested too deeply", id="100,000 levels of nesting"),
        pytest.param('{"a": "' + "x" * 10_000_000 + '"}', "expected at most", id="10 MB"),
    ],
)
def test_what_is_not_a_json_object_is_refused(text: str | bytes, words: str) -> None:
    error = refusal(text)
    assert error.reason == Reason.CONFIG_INVALID
    assert error.field == "config.json"
    assert words in error.message
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_hidden_layers", 0),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", 10**18),
        ("num_hidden_layers", "80"),
        ("num_hidden_layers", True),
        ("num_hidden_layers", 80.5),
        ("num_hidden_layers", [80]),
        ("hidden_size", 10**18),
        ("num_key_value_heads", 8),
        ("vocab_size", -5),
        ("intermediate_size", {"a": 1}),
        ("torch_dtype", "int4"),
        ("torch_dtype", 16),
        ("tie_word_embeddings", "no"),
        ("max_position_embeddings", -1),
        ("rope_scaling", "yes"),
        ("text_config", 3),
        ("quantization_config", ["fp8"]),
        ("layer_types", ["full_attention"]),
        ("layer_types", ["full_attention", "telepathy"]),
        ("layer_types", [1, 2]),
        ("architectures", "LlamaForCausalLM"),
        ("model_type", 7),
        ("num_local_experts", 8.0),
    ],
)
def test_a_field_that_cannot_be_is_named_with_what_was_found(field: str, value: object) -> None:
    error = refusal(json.dumps({**LLAMA, field: value}))
    assert (error.reason, error.field) == (Reason.CONFIG_INVALID, field)
    assert field in error.message
    assert "expected" in error.message


def test_a_nested_field_is_named_by_its_path() -> None:
    config = {"text_config": {**LLAMA, "num_hidden_layers": 5000}}
    error = refusal(json.dumps(config))
    assert error.field == "text_config.num_hidden_layers"
    assert error.message == "text_config.num_hidden_layers is 5000; expected a whole number from 1 to 1000"


@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"]
)
def test_a_needed_field_that_is_absent_or_null_is_named_with_its_other_names(field: str) -> None:
    without = {name: value for name, value in LLAMA.items() if name != field}
    for config in (without, {**LLAMA, field: None}):
        error = refusal(json.dumps(config))
        assert (error.reason, error.field) == (Reason.CONFIG_FIELD_MISSING, field)
        assert "also known as" in error.message
        assert "architecture.hfOverrides" in error.message


def test_an_unknown_architecture_with_the_usual_fields_is_planned_with_them() -> None:
    config = {**LLAMA, "model_type": "my_opt", "architectures": ["MyOptForCausalLM"]}
    facts = facts_from_config(json.dumps(config))
    usual = facts_from_config(json.dumps(LLAMA))
    assert isinstance(facts, ModelFacts)
    assert isinstance(usual, ModelFacts)
    assert facts.architecture == "MyOptForCausalLM"
    assert facts.layers == usual.layers


def test_an_index_without_its_total_is_refused() -> None:
    error = refusal(json.dumps(LLAMA), index_json='{"metadata": {}}')
    assert (error.reason, error.field) == (Reason.CONFIG_FIELD_MISSING, "metadata.total_size")


def test_an_index_that_is_not_json_is_named() -> None:
    assert refusal(json.dumps(LLAMA), index_json="oops").field == "model.safetensors.index.json"


def test_overrides_that_are_not_json_are_refused() -> None:
    error = refusal(json.dumps(LLAMA), overrides={"rope_theta": float("nan")})
    assert (error.reason, error.field) == (Reason.CONFIG_INVALID, "hfOverrides")


GROUP = {"targets": ["re:.*x.*"], "weights": {"num_bits": 4}}


@pytest.mark.parametrize(
    ("quantization", "field"),
    [
        pytest.param({"ignore": ["re:.*a.*"] * 5000}, "ignore", id="wildcards for all layers"),
        pytest.param({"ignore": ["layers.1.a*b"] * 5000}, "ignore", id="wildcards for one layer"),
        pytest.param({"ignore": ["*1*"] * 5}, "ignore", id="wildcards around digits"),
        pytest.param({"config_groups": {str(i): GROUP for i in range(5000)}}, "config_groups", id="groups"),
        pytest.param(
            {"config_groups": {"g": {**GROUP, "targets": ["*a*"] * 99}}},
            "config_groups.g.targets",
            id="targets",
        ),
    ],
)
def test_more_patterns_than_can_be_matched_in_time_are_refused(quantization: Any, field: str) -> None:
    config = {**LLAMA, "quantization_config": {"quant_method": "fp8", **quantization}}
    error = refusal(json.dumps(config))
    assert (error.reason, error.field) == (Reason.CONFIG_INVALID, f"quantization_config.{field}")


def test_a_regular_expression_that_would_run_for_years_costs_nothing() -> None:
    config = {
        **LLAMA,
        "quantization_config": {
            "quant_method": "fp8",
            "ignore": ["re:(a+)+$", "re:((.*)*)*x", "re:" + ".*" * 100_000],
        },
    }
    assert isinstance(facts_from_config(json.dumps(config)), ModelFacts)
