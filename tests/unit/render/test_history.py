"""Revisions as they are kept: found by number or hash, whatever version wrote them, told apart in full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bowsprit.api import defaults
from bowsprit.facts.packing import packed
from bowsprit.plan.result import Layout
from bowsprit.render.history import (
    KeptRevision,
    UnknownRevision,
    kept_revisions,
    revision_called,
    revision_document,
)
from bowsprit.render.revision import Revision, revision_of, to_controller_revision
from tests.unit.render.examples import FACTS, OWNER, spec

LAYOUT = Layout("A100", 1, 2, 2, (40, 40))
PINNED = {"runtime": "runtime:1", "engine": f"vllm@sha256:{'5a' * 32}"}


def made(number: int = 1, **changes: Any) -> Revision:
    return revision_of(spec(**changes), FACTS, OWNER.name, PINNED, number)


def manifest(revision: Revision) -> dict[str, Any]:
    """As the API server gives it back."""
    kept = to_controller_revision(revision, OWNER)
    kept["metadata"]["creationTimestamp"] = f"2026-11-30T12:00:0{revision.number}Z"
    return kept


def named(number: int, digest: str) -> KeptRevision:
    return KeptRevision(number, digest, "", {})


def test_the_owners_are_found_the_oldest_first() -> None:
    first, second = made(1), made(2, engine={"args": ["--seed=1"]})
    foreign = manifest(made(3))
    foreign["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "uid": "other"}]
    orphan = manifest(made(4))
    del orphan["metadata"]["ownerReferences"]
    kept = kept_revisions([manifest(second), foreign, orphan, manifest(first)], OWNER)
    assert [(each.number, each.hash) for each in kept] == [(1, first.hash), (2, second.hash)]
    assert kept[0].created == "2026-11-30T12:00:01Z"
    assert kept[0].spec == first.data["spec"]
    assert kept[0].weight_bytes == FACTS.weight_bytes


def test_an_edited_label_does_not_change_what_it_is_called() -> None:
    changed = manifest(made())
    changed["metadata"]["labels"] = {}
    (kept,) = kept_revisions([changed], OWNER)
    assert kept.hash == made().hash


def test_images_are_those_that_ran_and_else_those_of_the_spec() -> None:
    (kept,) = kept_revisions(
        [manifest(made(plugins=[{"image": "my-opt:1"}, {"requirement": "a==1"}]))], OWNER
    )
    assert kept.images == {**PINNED, "plugin-0": "my-opt:1"}
    (bare,) = kept_revisions([manifest(revision_of(spec(), None, OWNER.name, {}))], OWNER)
    assert bare.images == {"engine": defaults.ENGINE_IMAGE, "runtime": defaults.RUNTIME_IMAGE}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"renderVersion": 99, "spec": {"model": {"uri": "hf://a/b"}, "new": 1}}, id="newer"),
        pytest.param({"spec": 3, "derived": {"images": [], "weightBytes": "much", "facts": 1}}, id="damaged"),
        pytest.param(None, id="empty"),
    ],
)
def test_what_this_version_could_not_render_is_still_told(data: Any) -> None:
    kept = kept_revisions([{**manifest(made()), "data": data}], OWNER)
    assert [each.number for each in kept] == [1]
    assert kept[0].images == {}
    assert kept[0].weight_bytes is None
    assert isinstance(revision_document(kept[0], []), dict)


KEPT = [named(1, "12ab000000"), named(2, "12ac000000"), named(12, "1200000000"), named(1200, "9f00000000")]


@pytest.mark.parametrize(
    ("called", "number"),
    [
        pytest.param("1", 1, id="a number"),
        pytest.param("12", 12, id="a number, not the beginning of a hash"),
        pytest.param("12ab000000", 1, id="a hash"),
        pytest.param("12ac", 2, id="the beginning of a hash"),
        pytest.param("1200", 1200, id="a number goes before a hash that begins so"),
        pytest.param("12000", 12, id="digits that are no number of a revision"),
    ],
)
def test_a_revision_is_called_by_number_or_hash(called: str, number: int) -> None:
    assert revision_called(called, KEPT).number == number


@pytest.mark.parametrize(
    ("called", "said"),
    [
        pytest.param("3", r"no revision 3; there are: 1 \(12ab000000\), 2", id="no such number"),
        pytest.param("12a", "no revision 12a; ", id="too short a beginning"),
        pytest.param("", "no revision ; ", id="nothing"),
    ],
)
def test_an_unknown_revision_tells_which_there_are(called: str, said: str) -> None:
    with pytest.raises(UnknownRevision, match=said):
        revision_called(called, KEPT)


def test_a_beginning_that_several_have_is_told() -> None:
    with pytest.raises(UnknownRevision, match=r"beefc is the beginning of 1 \(beefcafe00\), 2 "):
        revision_called("beefc", [named(1, "beefcafe00"), named(2, "beefc0ffee")])
    with pytest.raises(UnknownRevision, match="there are: none"):
        revision_called("1", [])


def test_facts_are_told_with_config_json_as_it_is() -> None:
    told = {"config": packed({"num_hidden_layers": 80}), "supportsPP": True}
    revision = revision_of(spec(), replace(FACTS, told=told), OWNER.name, PINNED)
    (kept,) = kept_revisions([manifest(revision)], OWNER)
    assert kept.facts == {"config": {"num_hidden_layers": 80}, "supportsPP": True}
    assert revision_document(kept, [])["facts"] == kept.facts


def test_facts_have_a_digest_that_tells_them_apart() -> None:
    many = [
        replace(FACTS, told=told, users_config=config)
        for config in ("", "a")
        for told in ({}, {"supportsPP": True}, {"supportsPP": False}, {"config": "damaged"})
    ]
    revisions = [revision_of(spec(), facts, OWNER.name, PINNED) for facts in many]
    digests = [kept_revisions([manifest(each)], OWNER)[0].facts_digest for each in revisions]
    assert digests[0] == ""
    assert len(set(digests)) == len(many)


def test_the_document_does_not_depend_on_the_order_in_which_keys_are_stored() -> None:
    kept = manifest(made(architecture={"hfOverrides": {"a": 1, "b": {"c": 2, "d": 3}}}))
    turned = {**kept, "data": {name: kept["data"][name] for name in reversed(kept["data"])}}
    turned["data"]["spec"] = dict(reversed(kept["data"]["spec"].items()))
    documents = [revision_document(kept_revisions([each], OWNER)[0], [LAYOUT]) for each in (kept, turned)]
    assert documents[0] == documents[1]
    assert [list(each["spec"]) for each in documents] == [sorted(kept["data"]["spec"])] * 2
    assert list(documents[0]) == [
        *("spec", "images", "layouts", "facts", "usersConfig", "weightBytes", "renderVersion")
    ]
    assert documents[0]["layouts"][0]["tensor"] == 1
