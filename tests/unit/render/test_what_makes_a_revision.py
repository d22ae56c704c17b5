"""docs/decisions/0016: the user makes revisions; neither another operator nor another measure does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowsprit.api import defaults
from bowsprit.api.v1alpha1 import ModelDeploymentSpec, Preflight
from bowsprit.facts.model import ModelFacts
from bowsprit.render.preflight import preflight_key
from bowsprit.render.revision import (
    Revision,
    asked_before,
    from_controller_revision,
    revision_of,
    target_revision,
    to_controller_revision,
)
from tests.unit.render.examples import FACTS, OWNER, spec
from tests.unit.render.test_every_field_counts import SET, with_field

DEFAULTS: dict[str, Any] = {
    "ENGINE_IMAGE": "vllm/vllm-openai:v9",
    "RUNTIME_IMAGE": "bowsprit/runtime:v9",
    "SHARED_MEMORY": "1Gi",
    "PLUGIN_PATH": "/wheels",
    "ACCELERATOR_RESOURCE": "amd.com/gpu",
    "CONCURRENCY": 2,
    "GPU_MEMORY_UTILIZATION": 0.5,
    "KV_CACHE_DTYPE": "fp8",
    "OBJECTIVE": "MinimizeLatency",
    "VERIFY_MAX_TOKENS": 7,
    "VERIFY_PATH": "/v1/chat/completions",
}
"""Of an operator of a later day, all of those that pods are made from."""


@contextmanager
def later_operator(*changed: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in changed:
            patch.setattr(defaults, name, DEFAULTS[name])
        yield


@st.composite
def specs(draw: st.DrawFn) -> ModelDeploymentSpec:
    """Any fields of the API, each set to something."""
    fields: dict[str, Any] = {}
    for path in draw(st.lists(st.sampled_from(sorted(SET)), max_size=6, unique=True)):
        before, value = SET[path]
        sections = {
            name: {**section, **fields.get(name, {})} for name, section in before.items() if name != "plugins"
        }
        fields = with_field({**before, **fields, **sections}, path, value)
    fields["model"] = {"uri": "hf://a/b", **fields.get("model", {})}
    return spec(**fields)


IMAGES = st.dictionaries(st.sampled_from(["runtime", "engine", "plugin-0"]), st.sampled_from(["a@1", "a@2"]))


@st.composite
def measures(draw: st.DrawFn, users_config: str = "") -> ModelFacts:
    """What preflight may find of one model, today or with a runtime that measures otherwise."""
    told = draw(st.dictionaries(st.sampled_from(["config", "weights", "checkpoint"]), st.integers(0, 9)))
    return replace(
        FACTS,
        layers=FACTS.layers[:1],
        digest=draw(st.text(max_size=3)),
        embedding_bytes=draw(st.integers(0, 10**9)),
        users_config=users_config,
        told=told,
    )


def required(of: ModelDeploymentSpec) -> ModelDeploymentSpec:
    return of.model_copy(update={"preflight": None})


def skipping(of: ModelDeploymentSpec) -> ModelDeploymentSpec:
    return of.model_copy(update={"preflight": Preflight.SKIP})


def stored(revision: Revision) -> Revision:
    """As the cluster gives it back."""
    found = from_controller_revision(to_controller_revision(revision, OWNER))
    assert found is not None
    return found


OTHER = stored(revision_of(spec(engine={"args": ["--other"]}), FACTS, OWNER.name, {}, number=7))
CHANGED = st.lists(st.sampled_from(sorted(DEFAULTS)), unique=True)


PROOFS = st.tuples(measures(), IMAGES)


@settings(max_examples=40)
@given(specs(), PROOFS, PROOFS, CHANGED)
def test_measuring_anew_with_whatever_operator_makes_no_revision(
    asked: ModelDeploymentSpec,
    then: tuple[ModelFacts, dict[str, str]],
    now: tuple[ModelFacts, dict[str, str]],
    changed: list[str],
) -> None:
    asked = required(asked)
    first = stored(revision_of(asked, then[0], OWNER.name, then[1], number=3))
    with later_operator(*changed):
        assert target_revision(asked, now[0], OWNER.name, now[1], [first, OTHER]) == first


@settings(max_examples=40)
@given(specs(), measures(users_config="mine"), measures(), CHANGED)
def test_a_config_that_helps_out_makes_none_either(
    asked: ModelDeploymentSpec, with_help: ModelFacts, without: ModelFacts, changed: list[str]
) -> None:
    """A report may be too long for config.json on one day and not on the next."""
    asked = required(asked)
    for then, now in ((with_help, without), (without, with_help), (with_help, with_help)):
        first = stored(revision_of(asked, then, OWNER.name, {}))
        with later_operator(*changed):
            assert target_revision(asked, now, OWNER.name, {}, [first]) == first


@settings(max_examples=40)
@given(specs(), measures(users_config="mine"), measures(users_config="mine"), CHANGED)
def test_without_preflight_the_same_config_is_the_same_revision(
    asked: ModelDeploymentSpec, then: ModelFacts, now: ModelFacts, changed: list[str]
) -> None:
    first = stored(revision_of(skipping(asked), then, OWNER.name, {}))
    with later_operator(*changed):
        assert target_revision(skipping(asked), now, OWNER.name, {}, [first]) == first


@settings(max_examples=40)
@given(specs(), measures(users_config="mine"), measures(users_config="changed"))
def test_a_config_that_the_user_changed_makes_one_and_changed_back_goes_back(
    asked: ModelDeploymentSpec, before: ModelFacts, after: ModelFacts
) -> None:
    first = stored(revision_of(skipping(asked), before, OWNER.name, {}))
    second = target_revision(skipping(asked), after, OWNER.name, {}, [first])
    assert (second.number, second.hash != first.hash) == (2, True)
    assert target_revision(skipping(asked), before, OWNER.name, {}, [first, stored(second)]) == first


@settings(max_examples=40)
@given(specs(), measures(users_config="mine"), measures())
def test_proving_what_was_skipped_makes_none(
    asked: ModelDeploymentSpec, mine: ModelFacts, proven: ModelFacts
) -> None:
    first = stored(revision_of(skipping(asked), mine, OWNER.name, {}))
    assert target_revision(required(asked), proven, OWNER.name, {}, [first]) == first


def test_ones_own_config_in_place_of_what_preflight_read_is_a_change() -> None:
    proven = stored(revision_of(spec(), replace(FACTS, users_config=""), OWNER.name, {}))
    assert target_revision(skipping(spec()), FACTS, OWNER.name, {}, [proven]).number == 2


@settings(max_examples=40)
@given(specs(), specs())
def test_other_words_of_another_meaning_make_one(
    asked: ModelDeploymentSpec, other: ModelDeploymentSpec
) -> None:
    first, second = (stored(revision_of(each, FACTS, OWNER.name, {})) for each in (asked, other))
    same = first.hash == second.hash
    assert asked_before(asked, OWNER.name, [second]) == ([second] if same else [])


def test_a_default_spelled_out_while_it_is_the_default_is_what_was_asked_before() -> None:
    first = stored(revision_of(spec(), FACTS, OWNER.name, {}))
    spelled = spec(engine={"image": defaults.ENGINE_IMAGE})
    assert target_revision(spelled, FACTS, OWNER.name, {}, [first]) == first
    with later_operator("ENGINE_IMAGE"):
        assert target_revision(spec(), FACTS, OWNER.name, {}, [first]) == first
        new = target_revision(spec(engine={"image": defaults.ENGINE_IMAGE}), FACTS, OWNER.name, {}, [first])
        assert new.number == 2, "the new default, asked for in so many words"


def test_of_two_that_the_words_asked_for_the_newest_is_meant() -> None:
    then = stored(revision_of(spec(), FACTS, OWNER.name, {}, number=1))
    with later_operator("ENGINE_IMAGE"):
        spelled = stored(
            revision_of(spec(engine={"image": defaults.ENGINE_IMAGE}), FACTS, OWNER.name, {}, number=2)
        )
        assert target_revision(spec(), FACTS, OWNER.name, {}, [then, spelled]) == spelled


@settings(max_examples=40)
@given(specs(), CHANGED)
def test_one_that_was_stored_without_its_words_is_known_by_its_meaning(
    asked: ModelDeploymentSpec, changed: list[str]
) -> None:
    whole = revision_of(asked, FACTS, OWNER.name, {})
    first = stored(replace(whole, data={**whole.data, "derived": {}}))
    assert target_revision(asked, FACTS, OWNER.name, {}, [first]) == first


@settings(max_examples=40)
@given(specs(), CHANGED)
def test_a_proof_is_of_the_words_and_is_found_again_by_the_revision(
    asked: ModelDeploymentSpec, changed: list[str]
) -> None:
    key = preflight_key(asked, OWNER.namespace)
    kept = stored(revision_of(asked, FACTS, OWNER.name, {}))
    with later_operator(*changed):
        assert preflight_key(asked, OWNER.namespace) == key
        assert preflight_key(kept.said, OWNER.namespace) == key
