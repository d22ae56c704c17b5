"""List, watch, list again: the cache ends up equal to the API server, whatever broke in between."""

from __future__ import annotations

from typing import Any

import looptime
import pytest

from bowsprit.cluster.cache import Cache
from bowsprit.cluster.errors import ClusterError, Gone, NotServed, Unavailable
from bowsprit.cluster.listwatch import BACKOFF_MAX_S, ListWatch
from bowsprit.cluster.resources import PODS
from tests.unit.cluster.wire import ScriptedClient, ScriptEnded, event, obj, page

GONE = Gone("too old resource version", 410)
DOWN = Unavailable("connection refused")


def cache_of_names() -> Cache[str]:
    return Cache(lambda each: str(each["metadata"]["name"]), lambda *_: None)


async def after(client: ScriptedClient, cache: Cache[str] | None = None) -> list[str]:
    """Names in the cache when the script has ended."""
    cache = cache_of_names() if cache is None else cache
    with pytest.raises(ScriptEnded):
        await ListWatch(client, PODS, cache).run()
    return sorted(cache)


STORIES: dict[str, tuple[list[Any], list[Any], list[str]]] = {
    "a watch follows its list": (
        [[page(10, obj("a", 1))]],
        [[event("ADDED", obj("b", 11)), event("DELETED", obj("a", 12))]],
        ["b"],
    ),
    "a ghost whose deletion no watch has told is dropped by the next list": (
        [[page(10, obj("a", 1), obj("ghost", 2))], [page(30, obj("a", 1))]],
        [[GONE]],
        ["a"],
    ),
    "a watch that breaks off in the middle is made up for": (
        [[page(10)], [page(20, obj("a", 15))]],
        [[event("ADDED", obj("b", 11)), DOWN]],
        ["a"],
    ),
    "a list of several pages is one list": (
        [[page(10, obj("a", 1), more="x"), page(10, obj("b", 2))]],
        [],
        ["a", "b"],
    ),
    "a list that breaks off between two pages drops nothing": (
        [
            [page(10, obj("a", 1), obj("b", 2))],
            [page(20, obj("a", 1), more="x"), GONE],
            [page(30, obj("b", 2))],
        ],
        [[GONE]],
        ["b"],
    ),
    "an error on the first list is waited out": ([[DOWN], [DOWN], [page(10, obj("a", 1))]], [], ["a"]),
    "a kind that is not served says nothing about its objects": (
        [[page(10, obj("a", 1))], [NotServed("404 page not found", 404)]],
        [[DOWN]],
        ["a"],
    ),
    "a bookmark is no object": ([[page(10, obj("a", 1))]], [[event("BOOKMARK", obj("mark", 15))]], ["a"]),
}


@pytest.mark.looptime
@pytest.mark.parametrize(("lists", "watches", "names"), STORIES.values(), ids=STORIES)
async def test_story(lists: list[Any], watches: list[Any], names: list[str]) -> None:
    assert await after(ScriptedClient(lists, watches)) == names


@pytest.mark.looptime
async def test_a_watch_that_ends_well_goes_on_from_the_last_version_seen_without_a_list() -> None:
    client = ScriptedClient(
        [[page(10)]], [[event("ADDED", obj("a", 11))], [event("BOOKMARK", obj("", 40))], []]
    )
    assert await after(client) == ["a"]
    assert client.watched_from == ["10", "11", "40", "40"]


@pytest.mark.looptime
async def test_pauses_grow_while_watches_fail_at_once_though_every_list_succeeds(
    looptime: looptime.LoopTimeProxy,
) -> None:
    failing: list[list[Any]] = [[ClusterError("429")] for _ in range(9)]
    await after(ScriptedClient([[page(10)] for _ in range(9)], failing))
    assert looptime > 0.75 * sum(min(0.2 * 2**n, BACKOFF_MAX_S) for n in range(9))


@pytest.mark.looptime
async def test_a_watch_that_worked_ends_the_growing_of_pauses(looptime: looptime.LoopTimeProxy) -> None:
    broken: list[Any] = [event("ADDED", obj("a", 11)), DOWN]
    await after(ScriptedClient([[page(10)] for _ in range(20)], [list(broken) for _ in range(20)]))
    assert looptime < 20 * 0.2 * 1.25 + 1
