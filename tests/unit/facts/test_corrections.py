"""What changes the facts from outside of config.json: overrides and the safetensors index."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.facts.test_families import facts
from tests.unit.facts.test_refusals import LLAMA


def with_total(total: int) -> Any:
    return facts(LLAMA, index_json=json.dumps({"metadata": {"total_size": total}}))


def test_a_close_total_scales_the_layers_and_leaves_the_ends_exact() -> None:
    plain = facts(LLAMA)
    answer = with_total(plain.weight_bytes + 10_001)
    assert answer.weight_bytes == plain.weight_bytes + 10_001
    assert (answer.embedding_bytes, answer.head_bytes) == (plain.embedding_bytes, plain.head_bytes)


@pytest.mark.parametrize("factor", [0.25, 3])
def test_a_total_that_is_far_off_is_preferred_and_keeps_the_proportions(factor: float) -> None:
    plain = facts(LLAMA)
    answer = with_total(int(plain.weight_bytes * factor))
    assert answer.weight_bytes == int(plain.weight_bytes * factor)
    assert answer.embedding_bytes == pytest.approx(plain.embedding_bytes * factor, rel=0.01)
    assert answer.layers[1].sharded_bytes == pytest.approx(plain.layers[1].sharded_bytes * factor, rel=0.01)


def test_a_float32_checkpoint_takes_half_of_its_bytes_on_disk() -> None:
    plain = facts(LLAMA)
    index = json.dumps({"metadata": {"total_size": 2 * plain.weight_bytes}})
    assert facts({**LLAMA, "torch_dtype": "float32"}, index_json=index).weight_bytes == plain.weight_bytes


def test_overrides_reach_into_nested_configs_and_leave_the_rest_of_them() -> None:
    config = {"text_config": LLAMA}
    answer = facts(config, overrides={"text_config": {"num_hidden_layers": 5}})
    assert len(answer.layers) == 5
    assert answer.hidden_size == 64


def test_an_override_replaces_what_is_no_nested_config() -> None:
    config = {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    assert facts(config, overrides={"rope_scaling": {"rope_type": "linear"}}).max_model_len == 2048


def test_an_override_can_name_the_architecture_and_fill_in_a_missing_field() -> None:
    config = {name: value for name, value in LLAMA.items() if name != "num_attention_heads"}
    answer = facts(config, overrides={"architectures": ["MyLlama"], "num_attention_heads": 8})
    assert (answer.architecture, answer.heads) == ("MyLlama", 8)


def test_the_digest_follows_what_went_in() -> None:
    plain = facts(LLAMA)
    assert len(plain.digest) == 16
    assert facts({**LLAMA, "rope_theta": 1}).digest == facts(LLAMA, overrides={"rope_theta": 1}).digest
    assert len({plain.digest, facts({**LLAMA, "rope_theta": 1}).digest, with_total(10**6).digest}) == 3
