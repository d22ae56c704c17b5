from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.api import defaults
from bowsprit.render.problems import problems
from bowsprit.render.revision import (
    Revision,
    canonical_spec,
    from_controller_revision,
    revision_of,
    target_revision,
    to_controller_revision,
)
from bowsprit.render.workload import workload
from tests.unit.render.examples import EXAMPLES, FACTS, FIVE_PODS, OWNER, revision, spec

HF = {"uri": "hf://a/b"}

SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "absent sections and empty ones": (
        {},
        {"engine": {}, "capacity": {}, "parallelism": {}, "plugins": [], "template": {}, "architecture": {}},
    ),
    "defaults left out and spelled out": (
        {},
        {
            "model": {"uri": "hf://meta-llama/Llama-3.1-70B", "name": OWNER.name},
            "engine": {"image": defaults.ENGINE_IMAGE, "sharedMemory": "10Gi"},
            "accelerator": {"resource": "nvidia.com/gpu"},
            "capacity": {
                "concurrency": 1,
                "gpuMemoryUtilization": 0.92,
                "kvCacheDtype": "auto",
                "objective": "MinimizeGPUs",
            },
        },
    ),
    "a plugin's folder left out and spelled out": (
        {"plugins": [{"image": "a"}]},
        {"plugins": [{"image": "a", "path": "/plugins", "hashes": []}]},
    ),
    "one size in two spellings": (
        {"engine": {"sharedMemory": "20Gi"}, "capacity": {"cpuOffload": "1024Mi"}},
        {"engine": {"sharedMemory": "20480Mi"}, "capacity": {"cpuOffload": "1Gi"}},
    ),
    "products in another order": (
        {"accelerator": {"products": ["a", "b"]}},
        {"accelerator": {"products": ["b", "a", "b"]}},
    ),
    "keys in another order": (
        {"architecture": {"hfOverrides": {"a": 1, "b": {"c": 2, "d": 3}}}},
        {"architecture": {"hfOverrides": {"b": {"d": 3, "c": 2}, "a": 1}}},
    ),
    "another number of replicas, priority and rollout": (
        {},
        {"replicas": 7, "priority": 3, "suspend": True, "rollout": {"mode": "Recreate"}},
    ),
    "another source of the same facts": (
        {"model": HF},
        {"model": {**HF, "config": {"configMapRef": {"name": "c"}}}},
    ),
}

DIFFERENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "arguments in another order, for the last one wins": (
        {"engine": {"args": ["--a", "--b"]}},
        {"engine": {"args": ["--b", "--a"]}},
    ),
    "plugins in another order, for the last one wins": (
        {"plugins": [{"image": "a"}, {"image": "b"}]},
        {"plugins": [{"image": "b"}, {"image": "a"}]},
    ),
    "null in hfOverrides, which is a value": (
        {"architecture": {"hfOverrides": {"a": 1}}},
        {"architecture": {"hfOverrides": {"a": 1, "b": None}}},
    ),
    "a plugin without entry points and one that names none": (
        {"plugins": [{"image": "a"}]},
        {"plugins": [{"image": "a", "entryPoints": []}]},
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_one_revision_for(case: str) -> None:
    one, other = SAME[case]
    assert revision(**one).hash == revision(**other).hash


@pytest.mark.parametrize("case", DIFFERENT)
def test_two_revisions_for(case: str) -> None:
    one, other = DIFFERENT[case]
    assert revision(**one).hash != revision(**other).hash


def test_another_config_of_the_users_is_another_revision_and_other_facts_are_not() -> None:
    known = revision()
    assert revision_of(spec(), replace(FACTS, users_config="other"), OWNER.name, {}).hash != known.hash
    measured_anew = replace(FACTS, digest="other", embedding_bytes=1, told={"config": "x"})
    assert revision_of(spec(), measured_anew, OWNER.name, {}).hash == known.hash


def test_an_operator_with_other_defaults_renders_a_stored_revision_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = to_controller_revision(revision(), OWNER)
    before = workload(OWNER, revision(), FIVE_PODS, 1)
    monkeypatch.setattr(defaults, "ENGINE_IMAGE", "vllm/vllm-openai:v9")
    monkeypatch.setattr(defaults, "GPU_MEMORY_UTILIZATION", 0.5)
    monkeypatch.setattr(defaults, "SHARED_MEMORY", "1Gi")
    found = from_controller_revision(stored)
    assert found is not None
    assert workload(OWNER, found, FIVE_PODS, 1) == before


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_stored_revision_is_read_back_whole(name: str) -> None:
    what = revision(**EXAMPLES[name].fields)
    assert from_controller_revision(to_controller_revision(what, OWNER)) == what


def test_a_rule_that_came_later_takes_no_stored_revision_away() -> None:
    refused_today = spec(engine={"args": ["--max-num-batched-tokens=8", "--max-num-seqs=16"]})
    assert problems(refused_today)
    kept = revision_of(refused_today, FACTS, OWNER.name, {})
    assert from_controller_revision(to_controller_revision(kept, OWNER)) == kept


def test_the_canonical_form_of_a_canonical_spec_is_itself() -> None:
    for example in EXAMPLES.values():
        once = revision(**example.fields)
        assert canonical_spec(once.spec, OWNER.name) == once.data["spec"]


def test_edited_labels_and_names_of_a_stored_revision_do_no_harm() -> None:
    stored = to_controller_revision(revision(), OWNER)
    stored["metadata"] = {"name": "other", "labels": {"bowsprit.dev/revision": "other"}}
    assert from_controller_revision(stored) == revision()


def without(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


DATA = dict(revision().data)
DAMAGED: dict[str, Any] = {
    "no data": {"revision": 1},
    "data of another controller": {"data": {"spec": {"template": {}}}, "revision": 1},
    "data that is text": {"data": "x", "revision": 1},
    "no number": {"data": DATA},
    "a number that is text": {"data": DATA, "revision": "1"},
    "no spec": {"data": without(DATA, "spec"), "revision": 1},
    "a spec that is a list": {"data": {**DATA, "spec": []}, "revision": 1},
    "a spec without a model": {"data": {**DATA, "spec": {}}, "revision": 1},
    "a spec with an unknown field": {"data": {**DATA, "spec": {**DATA["spec"], "x": 1}}, "revision": 1},
    "a spec that cannot be rendered": {
        "data": {**DATA, "spec": {**DATA["spec"], "template": {"spec": {"volumes": 1}}}},
        "revision": 1,
    },
    "no facts": {"data": without(DATA, "facts"), "revision": 1},
    "a render version that is not known": {"data": {**DATA, "renderVersion": 99}, "revision": 1},
    "a number that JSON does not have": {
        "data": {**DATA, "spec": {**DATA["spec"], "architecture": {"hfOverrides": {"a": float("nan")}}}},
        "revision": 1,
    },
}


@pytest.mark.parametrize("case", DAMAGED)
def test_no_revision_is_read_from(case: str) -> None:
    assert from_controller_revision(DAMAGED[case]) is None


LOST: tuple[Any, ...] = (
    *(None, [], "x", {}),
    {"weightBytes": "many", "images": {"engine": 1}, "said": {"model": {}}, "facts": []},
)


@pytest.mark.parametrize("derived", LOST)
def test_lost_figures_only_cost_the_start_up_budget(derived: Any) -> None:
    found = from_controller_revision({"data": {**DATA, "derived": derived}, "revision": 4})
    assert found is not None
    assert (found.hash, found.weight_bytes, found.images, found.told) == (revision().hash, None, {}, {})
    assert target_revision(found.spec, FACTS, OWNER.name, {}, [found]) is found


def test_what_a_newer_operator_stored_besides_is_written_back_as_it_was() -> None:
    """Data of a ControllerRevision cannot be changed: an apply that left it out would be refused for ever."""
    derived = {**DATA["derived"], "more": {"a": 1}}
    manifest = to_controller_revision(replace(revision(), data={**DATA, "derived": derived}), OWNER)
    found = from_controller_revision(manifest)
    assert found is not None
    assert to_controller_revision(found, OWNER) == manifest


def test_the_first_revision_is_number_one() -> None:
    assert target_revision(spec(), FACTS, OWNER.name, {}, []).number == 1


def test_a_new_revision_counts_on_from_the_highest() -> None:
    known = [replace(revision(engine={"args": [f"--{number}"]}), number=number) for number in (2, 9, 4)]
    assert target_revision(spec(), FACTS, OWNER.name, {}, known).number == 10


def test_going_back_takes_the_stored_revision_with_its_figures() -> None:
    old = revision_of(spec(), replace(FACTS, embedding_bytes=1), OWNER.name, {}, number=1)
    newer = revision_of(spec(engine={"args": ["--x"]}), FACTS, OWNER.name, {}, number=2)
    assert target_revision(spec(), FACTS, OWNER.name, {}, [newer, old]) == old


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, JSON, JSON)
def test_whatever_is_stored_is_a_revision_or_none(data: Any, spec: Any, template: Any) -> None:
    for each in (data, {**DATA, "spec": spec}, {**DATA, "spec": {**DATA["spec"], "template": template}}):
        found = from_controller_revision({"data": each, "revision": 1})
        assert found is None or isinstance(workload(OWNER, found, FIVE_PODS, 1), dict)


def test_hashes_are_ten_hex_digits() -> None:
    found: Revision = revision()
    assert len(found.hash) == 10
    assert int(found.hash, 16) >= 0
