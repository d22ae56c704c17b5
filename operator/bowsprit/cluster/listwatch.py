"""List, watch, and list again: keeps one Cache equal to the API server for ever.

Own instead of kopf's for the kinds that come in tens of thousands, because each object is projected while the
list streams in and because a relist must be diffed (cache.py says why).
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import structlog

from bowsprit.cluster.cache import Cache, ObjectKey, key_of
from bowsprit.cluster.client import WHOLE, Form, KubeClient
from bowsprit.cluster.errors import ClusterError
from bowsprit.cluster.resources import Resource

BACKOFF_START_S = 0.2
BACKOFF_MAX_S = 5.0
RECONNECT_S = 0.1
"""Between the end of one watch and the next: a proxy may end each of them at once."""

log = structlog.get_logger()


class ListWatch:
    """One resource, optionally narrowed by labels, fields or namespace, feeding one cache."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        cache: Cache[Any],
        *,
        selector: str | None = None,
        fields: str | None = None,
        namespace: str | None = None,
        form: Form = WHOLE,
    ) -> None:
        self._client = client
        self._resource = resource
        self._cache = cache
        self._selector = selector
        self._fields = fields
        self._namespace = namespace
        self._form = form
        self._pause_s = BACKOFF_START_S

    async def run(self) -> None:
        """Never returns; errors are waited out with growing, jittered pauses."""
        while True:
            try:
                await self._follow(await self.relist())
            except ClusterError as error:
                log.warning(
                    "watch.retry",
                    resource=self._resource.plural,
                    error=error.message,
                    pause_s=round(self._pause_s, 1),
                )
                await asyncio.sleep(self._pause_s * random.uniform(0.75, 1.25))
                self._pause_s = min(self._pause_s * 2, BACKOFF_MAX_S)

    async def relist(self) -> str:
        """Reads the full list into the cache and drops the ghosts; returns the list's resourceVersion.

        A list that breaks off half-way drops nothing.
        """
        seen: set[ObjectKey] = set()
        version = ""
        async for page in self._client.pages(
            self._resource,
            selector=self._selector,
            fields=self._fields,
            namespace=self._namespace,
            form=self._form,
        ):
            version = version or page["metadata"]["resourceVersion"]
            for obj in page["items"]:
                seen.add(key_of(obj))
                self._cache.upsert(obj)
        self._cache.prune(seen, int(version))
        return version

    async def _follow(self, version: str) -> None:
        """Watches from `version` on, reconnecting with the last one seen, until it has expired (Gone)."""
        while True:
            async for event in self._client.watch(
                self._resource,
                version,
                selector=self._selector,
                fields=self._fields,
                namespace=self._namespace,
                form=self._form,
            ):
                obj = event["object"]
                version = obj["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._cache.event(event["type"], obj)
                # Lists that succeed prove little: only a watch that works ends the growing of pauses.
                self._pause_s = BACKOFF_START_S
            await asyncio.sleep(RECONNECT_S)
