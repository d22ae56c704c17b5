"""Objects and an API server made of a script: what each list and each watch answers, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import ClusterError

Json = dict[str, Any]


def obj(name: str, version: int, **more: Any) -> Json:
    return {"metadata": {"namespace": "team", "name": name, "resourceVersion": str(version)}, **more}


def page(version: int, *items: Json, more: str = "") -> Json:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


def event(kind: str, subject: Json) -> Json:
    return {"type": kind, "object": subject}


class ScriptEnded(Exception):
    """The list-watch asked for more than the script holds: the test is over."""


class ScriptedClient(KubeClient):
    """Lists and watches from a script; each is pages or events, and an error where it breaks off."""

    def __init__(
        self, lists: Iterable[list[Json | ClusterError]], watches: Iterable[list[Json | ClusterError]] = ()
    ) -> None:
        self._lists, self._watches = list(lists), list(watches)
        self.watched_from: list[str] = []

    async def pages(self, *_: Any, **__: Any) -> AsyncIterator[Json]:
        for each in _next(self._lists):
            yield _or_raise(each)

    async def watch(self, _: Any, resource_version: str, **__: Any) -> AsyncIterator[Json]:
        self.watched_from.append(resource_version)
        for each in _next(self._watches):
            yield _or_raise(each)


def _next(script: list[list[Json | ClusterError]]) -> list[Json | ClusterError]:
    if not script:
        raise ScriptEnded
    return script.pop(0)


def _or_raise(each: Json | ClusterError) -> Json:
    if isinstance(each, ClusterError):
        raise each
    return each
