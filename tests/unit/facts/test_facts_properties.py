"""Whatever comes in, facts_from_config answers; and what it answers makes sense."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.facts.config import facts_from_config
from bowsprit.facts.model import FactsError, Layer, ModelFacts
from tests.unit.facts.test_refusals import LLAMA
from tests.unit.facts.test_reported_weights import TABLE

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 300)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["float16", "gptq", "fp8", "re:.*", "linear_attention", "M*-E"])
)
FIELDS = sorted({key for config in TABLE["models"].values() for key in config} | {"text_config", *LLAMA})
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6),
    max_leaves=20,
)


def sizes(layer: Layer) -> list[int]:
    kv = layer.kv
    weights = [layer.sharded_bytes, layer.kv_projection_bytes, layer.expert_bytes, layer.replicated_bytes]
    return [*weights, kv.kv_heads, kv.values_per_head, kv.latent_values, kv.window, kv.state_bytes]


def assert_sane(answer: ModelFacts | FactsError) -> None:
    if isinstance(answer, FactsError):
        assert answer.message
        assert answer.field
        assert len(answer.message) < 1000
        return
    numbers = [size for layer in answer.layers for size in sizes(layer)]
    numbers += [answer.embedding_bytes, answer.head_bytes, answer.extra_bytes, answer.rank_bytes]
    numbers += [answer.intermediate_size, answer.experts]
    assert all(type(number) is int and number >= 0 for number in numbers)
    positive = [answer.hidden_size, answer.heads, answer.kv_heads, answer.head_dim, answer.weight_bytes]
    assert all(type(number) is int and number > 0 for number in positive)
    assert all(divisor.size > 0 and divisor.unit > 0 for divisor in answer.divisors)
    assert set(answer.expert_parallel_divisors) <= set(answer.divisors)


@given(JSON)
@settings(deadline=None)
def test_any_json_is_answered(value: Any) -> None:
    assert_sane(facts_from_config(json.dumps(value)))


@given(st.text() | st.binary())
@settings(deadline=None)
def test_any_text_or_bytes_are_answered(value: str | bytes) -> None:
    assert_sane(facts_from_config(value))


@given(st.sampled_from(sorted(TABLE["models"])), st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3))
@settings(deadline=None, max_examples=200)
def test_a_real_config_with_fields_replaced_is_answered(model: str, changes: dict[str, Any]) -> None:
    assert_sane(facts_from_config(json.dumps({**TABLE["models"][model], **changes})))


@given(
    st.sampled_from(sorted(m for m, c in TABLE["models"].items() if "text_config" in c)),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3),
)
@settings(deadline=None, max_examples=50)
def test_a_real_config_with_nested_overrides_is_answered(model: str, changes: dict[str, Any]) -> None:
    config = json.dumps(TABLE["models"][model])
    assert_sane(facts_from_config(config, overrides={"text_config": changes, **changes}))


@given(st.sampled_from(sorted(TABLE["models"])), st.data())
@settings(deadline=None, max_examples=100)
def test_a_real_config_that_lost_fields_is_answered(model: str, data: st.DataObject) -> None:
    config = TABLE["models"][model]
    lost = data.draw(st.sets(st.sampled_from(sorted(config)), max_size=4))
    assert_sane(facts_from_config(json.dumps({k: v for k, v in config.items() if k not in lost})))


@given(st.integers(1, 200), st.integers(1, 200))
@settings(deadline=None)
def test_more_layers_weigh_more(one: int, other: int) -> None:
    few, many = (
        facts_from_config(json.dumps({**LLAMA, "num_hidden_layers": layers}))
        for layers in sorted((one, other))
    )
    assert isinstance(few, ModelFacts)
    assert isinstance(many, ModelFacts)
    assert (few.weight_bytes < many.weight_bytes) == (one != other)


@given(st.permutations(sorted(LLAMA.items())), st.sampled_from([None, 2, "\t"]))
@settings(deadline=None)
def test_the_digest_knows_neither_key_order_nor_whitespace(items: list[Any], indent: Any) -> None:
    assert facts_from_config(json.dumps(dict(items), indent=indent)) == facts_from_config(json.dumps(LLAMA))


@given(st.integers(1, 10**13))
@settings(deadline=None)
def test_an_index_makes_the_sum_exact(total: int) -> None:
    facts = facts_from_config(json.dumps(LLAMA), index_json=json.dumps({"metadata": {"total_size": total}}))
    assert_sane(facts)
    assert isinstance(facts, ModelFacts)
    assert facts.weight_bytes == total
