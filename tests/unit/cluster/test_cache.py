"""The cache: whatever order objects come in, it holds the newest of each and no ghosts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit.cluster import cache as module
from bowsprit.cluster.cache import Cache, ObjectKey
from tests.unit.cluster.wire import obj

A = ObjectKey("team", "a")


class Seen:
    """A cache of each object's `value`, and the changes that it told."""

    def __init__(self) -> None:
        self.changes: list[tuple[Any, Any]] = []
        self.cache: Cache[str] = Cache(
            lambda obj: obj.get("value"), lambda key, before, after: self.changes.append((before, after))
        )


@pytest.fixture
def seen() -> Seen:
    return Seen()


def a(version: int, value: str | None = None) -> dict[str, Any]:
    return obj("a", version, value=value or f"v{version}")


STORIES = {
    "an older version does not overwrite a newer one": ([("MODIFIED", a(5)), ("MODIFIED", a(4))], "v5"),
    "a deletion takes the object out": ([("ADDED", a(5)), ("DELETED", a(6))], None),
    "a late deletion of a predecessor leaves its successor": ([("ADDED", a(9)), ("DELETED", a(6))], "v9"),
    "an answer that the deletion has overtaken does not bring the object back": (
        [("ADDED", a(5)), ("DELETED", a(7)), ("MODIFIED", a(6))],
        None,
    ),
    "a successor under the same name comes in after a deletion": (
        [("ADDED", a(5)), ("DELETED", a(7)), ("ADDED", a(8))],
        "v8",
    ),
    "a deletion seen twice is a deletion": ([("ADDED", a(5)), ("DELETED", a(7)), ("DELETED", a(7))], None),
    "a deletion of something unknown still counts against what comes late": (
        [("DELETED", a(7)), ("ADDED", a(6))],
        None,
    ),
    "what a listing shows exists": ([(None, a(3))], "v3"),
}


@pytest.mark.parametrize(("events", "value"), STORIES.values(), ids=STORIES)
def test_after(events: list[tuple[str | None, dict[str, Any]]], value: str | None, seen: Seen) -> None:
    for kind, subject in events:
        seen.cache.event(kind, subject)
    assert seen.cache.get(A) == value


def test_a_list_drops_what_it_does_not_hold(seen: Seen) -> None:
    seen.cache.upsert(a(5))
    seen.cache.prune(set(), list_version=8)
    assert seen.cache.get(A) is None
    assert seen.changes == [(None, "v5"), ("v5", None)]


def test_a_list_does_not_drop_what_was_written_after_it(seen: Seen) -> None:
    seen.cache.upsert(a(9))
    seen.cache.prune(set(), list_version=8)
    assert seen.cache.get(A) == "v9"


def test_what_a_list_dropped_does_not_come_back_with_a_late_answer(seen: Seen) -> None:
    seen.cache.upsert(a(5))
    seen.cache.prune(set(), list_version=8)
    seen.cache.upsert(a(6))
    assert seen.cache.get(A) is None


def test_a_kind_that_came_back_is_taken_in_whatever_its_versions(seen: Seen) -> None:
    seen.cache.upsert(a(5))
    seen.cache.clear()
    assert seen.cache.synced
    assert seen.cache.get(A) is None
    seen.cache.upsert(a(5))
    assert seen.cache.get(A) == "v5"


def test_a_change_that_the_projection_does_not_show_is_not_told(seen: Seen) -> None:
    seen.cache.upsert(a(5, "same"))
    seen.cache.upsert(a(6, "same"))
    assert seen.changes == [(None, "same")]


def test_an_object_that_leaves_the_projection_is_told_as_removed_and_stays_dated(seen: Seen) -> None:
    seen.cache.upsert(a(5))
    seen.cache.upsert(obj("a", 7))
    seen.cache.upsert(a(6))
    assert seen.changes == [(None, "v5"), ("v5", None)]
    assert seen.cache.get(A) is None


def test_only_so_many_deletions_are_remembered(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRAVES", 2)
    for name in ("a", "b", "c"):
        seen.cache.remove(obj(name, 5))
    for name in ("a", "b", "c"):
        seen.cache.upsert(obj(name, 4, value=name))
    assert sorted(seen.cache) == ["a"]


LIFE = [
    ("ADDED", 1),
    ("MODIFIED", 2),
    ("DELETED", 3),
    ("ADDED", 4),
    ("MODIFIED", 5),
    ("DELETED", 6),
    ("ADDED", 7),
]


@given(order=st.permutations(LIFE), length=st.integers(1, len(LIFE)))
def test_in_any_order_the_end_is_that_of_the_newest_event(order: list[tuple[str, int]], length: int) -> None:
    """As long as the newest event has been seen, in whatever order and however often the others come."""
    told = order[:length]
    seen = Seen()
    for kind, version in told:
        seen.cache.event(kind, a(version))
    kind, version = max(told, key=lambda each: each[1])
    assert seen.cache.get(A) == (None if kind == "DELETED" else f"v{version}")
