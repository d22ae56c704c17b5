"""What was told of a model is read again whole, today from a report and later from a revision."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.facts.config import facts_from_config
from bowsprit.facts.config_map import facts_from_config_map
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.facts.told import facts_from_told, with_told
from bowsprit.plan.memory import GIB, costs
from bowsprit.plan.partition import balanced
from bowsprit.plan.wish import Demand
from tests.unit.facts.test_report import CONFIG, WEIGHTS, packed

CHECKPOINT = {"layers": [[1, 900_000], [3, 1_300_000]], "embedding": 500_000, "head": 400_000, "other": 7}
LABELLED = {**CONFIG, "id2label": {"0": "a"}, "_name_or_path": "/home/me", "transformers_version": "4.50"}


def known(**told: Any) -> ModelFacts:
    found = facts_from_told({"config": packed(CONFIG), **told}, {})
    assert isinstance(found, ModelFacts)
    return found


def of_config_map(data: dict[str, Any], dtype: str | None = None) -> ModelFacts:
    found = facts_from_config_map("c", "team", {"data": data}, {"num_key_value_heads": 1}, dtype)
    assert isinstance(found, ModelFacts)
    return found


INDEX = json.dumps({"metadata": {"total_size": 9_000_000}})


@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize("more", [{}, {"model.safetensors.index.json": INDEX}])
def test_facts_of_a_users_config_are_read_again_from_what_they_keep(
    more: dict[str, str], dtype: str | None
) -> None:
    facts = of_config_map({"config.json": json.dumps(LABELLED), **more}, dtype)
    kept = json.loads(json.dumps(facts.told))
    again = facts_from_told(kept, {"num_key_value_heads": 1}, dtype)
    assert isinstance(again, ModelFacts)
    assert again == replace(facts, digest=again.digest, users_config="")
    assert again.told == facts.told


def test_facts_of_a_report_are_read_again_from_what_they_keep() -> None:
    facts = known(supportsPP=False, maxModelLen=99, checkpoint=CHECKPOINT, weights={"1": WEIGHTS})
    again = facts_from_told(json.loads(json.dumps(facts.told)), {})
    assert again == facts


def test_a_config_that_helps_out_keeps_what_the_report_said_besides() -> None:
    facts = with_told({"weights": {"1": WEIGHTS}}, of_config_map({"config.json": json.dumps(CONFIG)}))
    again = facts_from_told(facts.told, {"num_key_value_heads": 1})
    assert isinstance(again, ModelFacts)
    assert again.measured == facts.measured
    assert facts.users_config


def test_the_users_config_counts_by_what_it_says_and_not_by_its_spelling_index_or_overrides() -> None:
    plain = of_config_map({"config.json": json.dumps(CONFIG)}).users_config
    spelled = json.dumps(dict(reversed(CONFIG.items())), indent=3)
    assert (
        of_config_map({"config.json": spelled, "model.safetensors.index.json": INDEX}).users_config == plain
    )
    assert of_config_map({"config.json": json.dumps({**CONFIG, "vocab_size": 2})}).users_config != plain
    own = facts_from_config(json.dumps(CONFIG))
    assert isinstance(own, ModelFacts)
    assert own.users_config == ""


def test_labels_and_names_are_not_kept() -> None:
    assert of_config_map({"config.json": json.dumps(LABELLED)}).told == {"config": packed_small(CONFIG)}


def packed_small(config: dict[str, Any]) -> Any:
    facts = facts_from_config(json.dumps(config))
    assert isinstance(facts, ModelFacts)
    return facts.told["config"]


def test_every_layer_has_the_bytes_of_the_checkpoint_and_is_split_as_its_shape_says() -> None:
    facts, shapes = known(checkpoint=CHECKPOINT), known()
    assert [layer.weight_bytes for layer in facts.layers] == [900_000, *[1_300_000] * 3]
    assert (facts.embedding_bytes, facts.head_bytes, facts.extra_bytes) == (500_000, 400_000, 7)
    for ours, theirs in zip(facts.layers, shapes.layers, strict=True):
        share = ours.weight_bytes / theirs.weight_bytes
        assert ours.sharded_bytes == int(theirs.sharded_bytes * share)
        assert ours.kv == theirs.kv
    assert facts.digest != shapes.digest


def test_a_head_that_is_not_in_the_checkpoint_is_tied_or_made_by_the_engine() -> None:
    assert known(checkpoint={**CHECKPOINT, "head": 0}).head_bytes == known().head_bytes


def test_what_the_engine_built_goes_before_the_checkpoint() -> None:
    facts = known(checkpoint=CHECKPOINT, weights={"1": WEIGHTS})
    assert costs(facts, Demand(max_model_len=1), 1, 1).first == WEIGHTS["embedding"]
    assert costs(facts, Demand(max_model_len=1), 2, 1).first == 250_000 + 7


DAMAGED: dict[str, Any] = {
    "no object": [],
    "another number of layers": {**CHECKPOINT, "layers": [[5, 1]]},
    "no layers": {**CHECKPOINT, "layers": []},
    "a layer of less than nothing": {**CHECKPOINT, "layers": [[4, -1]]},
    "no embedding": {key: value for key, value in CHECKPOINT.items() if key != "embedding"},
    "a head that is true": {**CHECKPOINT, "head": True},
}


@pytest.mark.parametrize("case", DAMAGED)
def test_shapes_are_reckoned_with_where_the_checkpoint_is_told_as(case: str) -> None:
    facts, shapes = known(checkpoint=DAMAGED[case]), known()
    assert replace(facts, digest=shapes.digest) == shapes


def test_stages_are_cut_by_the_layers_that_are_there() -> None:
    """Two layers of eight times the others' bytes: by their shapes all are alike."""
    heavy = {"layers": [[2, 8 * GIB], [2, GIB]], "embedding": GIB, "head": GIB, "other": 0}
    demand = Demand(max_model_len=16)
    by_shape = balanced(costs(known(), demand, 1, 2), 2)
    by_bytes = balanced(costs(known(checkpoint=heavy), demand, 1, 2), 2)
    assert (by_shape, by_bytes) == ((2, 2), (1, 3))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON, JSON, JSON)
def test_whatever_is_told_gives_facts_or_an_error(one: Any, two: Any, three: Any, four: Any) -> None:
    told = {"checkpoint": one, "weights": two, "totalSize": three, "maxModelLen": four}
    assert isinstance(facts_from_told({"config": packed(CONFIG), **told}, {}), ModelFacts)
    assert isinstance(facts_from_told({"config": one, **told}, {}), FactsError)
