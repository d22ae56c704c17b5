"""A cache of projected objects that survives lost watches: full lists are diffed, never trusted to be events.

A watch can lose a deletion (a relist after 410 shows only what is still there); an object that exists only in
the cache would hold GPUs for ever. So every list replaces the cache, and what the list lacks is reported as
removed. Objects also come from answers to our own writes, and those may overtake the watch or be overtaken by
it: a version that is older than what is known, or than the object's deletion, is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

View = TypeVar("View")

GRAVES = 4096
"""Deletions that are remembered: what is still under way from before them is seconds old."""


class ObjectKey(NamedTuple):
    namespace: str
    name: str


def key_of(obj: Mapping[str, Any]) -> ObjectKey:
    meta = obj["metadata"]
    return ObjectKey(meta.get("namespace", ""), meta["name"])


def version_of(obj: Mapping[str, Any]) -> int:
    """resourceVersion as a number: they are ordered within one resource (KEP-5504)."""
    try:
        return int(obj["metadata"].get("resourceVersion") or 0)
    except ValueError:
        return 0


class Cache(Generic[View]):
    """Objects of one resource, each projected to a View as it comes in; None from `project` keeps it out."""

    def __init__(
        self,
        project: Callable[[Mapping[str, Any]], View | None],
        changed: Callable[[ObjectKey, View | None, View | None], None],
    ) -> None:
        self._project = project
        self._changed = changed
        self._views: dict[ObjectKey, View] = {}
        self._versions: dict[ObjectKey, int] = {}
        self._graves: dict[ObjectKey, int] = {}
        """Version of the deletion, oldest first."""
        self.synced = False

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Iterator[View]:
        return iter(self._views.values())

    def get(self, key: ObjectKey) -> View | None:
        return self._views.get(key)

    def items(self) -> Iterable[tuple[ObjectKey, View]]:
        return self._views.items()

    def upsert(self, obj: Mapping[str, Any]) -> None:
        """Takes the object in, unless a newer version or its deletion is known already."""
        key, version = key_of(obj), version_of(obj)
        if version and version < max(self._versions.get(key, 0), self._graves.get(key, 0)):
            return
        before, after = self._views.get(key), self._project(obj)
        self._versions[key] = version
        if after is None:
            self._views.pop(key, None)
        else:
            self._views[key] = after
        if before != after:
            self._changed(key, before, after)

    def remove(self, obj: Mapping[str, Any]) -> None:
        """Takes the object out, unless a newer one has taken its name already."""
        key, version = key_of(obj), version_of(obj)
        if self._versions.get(key, 0) > version:
            return
        self._bury(key, version)
        self._drop(key)

    def event(self, kind: str | None, obj: Mapping[str, Any]) -> None:
        """One watch event; None stands for "exists" in a listing."""
        if kind == "DELETED":
            self.remove(obj)
        else:
            self.upsert(obj)

    def prune(self, seen: set[ObjectKey], list_version: int) -> None:
        """After a full list: drops what the list did not hold and nobody has written since."""
        for key in [
            key for key, version in self._versions.items() if key not in seen and version <= list_version
        ]:
            self._bury(key, list_version)
            self._drop(key)
        self.synced = True

    def clear(self) -> None:
        """The kind itself is not there: neither are its objects, until it comes (back)."""
        for key in tuple(self._versions):
            self._drop(key)
        self.synced = True

    def _bury(self, key: ObjectKey, version: int) -> None:
        self._graves[key] = max(version, self._graves.pop(key, 0))
        if len(self._graves) > GRAVES:
            del self._graves[next(iter(self._graves))]

    def _drop(self, key: ObjectKey) -> None:
        self._versions.pop(key, None)
        before = self._views.pop(key, None)
        if before is not None:
            self._changed(key, before, None)
