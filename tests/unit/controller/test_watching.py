"""A watch of kopf that ends for good must end the operator, or it would go on deaf."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import kopf
import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from bowsprit.cluster.resources import DEFINITIONS, DEPLOYMENTS, Resource
from bowsprit.controller import watching as module
from bowsprit.controller.book import Book
from bowsprit.controller.handlers import registry_for
from bowsprit.controller.queue import WorkQueue
from bowsprit.controller.watching import Watching
from bowsprit.inventory.products import ProductTable

BROKEN = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcdserver: no leader"}}


def _group(resource: Resource) -> dict[str, Any]:
    version = {"version": resource.version}
    return {"name": resource.group, "versions": [version], "preferredVersion": version}


def _kind(resource: Resource) -> dict[str, Any]:
    named = {"name": resource.plural, "kind": resource.kind, "singularName": resource.kind.lower()}
    return {**named, "namespaced": resource.namespaced, "verbs": ["list", "watch"]}


EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ANSWERS = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [_kind(NAMESPACES)]},
    "/apis": {"groups": [_group(DEPLOYMENTS), _group(DEFINITIONS)]},
    f"/apis/{DEPLOYMENTS.api_version}": {"resources": [_kind(DEPLOYMENTS)]},
    f"/apis/{DEFINITIONS.api_version}": {"resources": [_kind(DEFINITIONS)]},
    DEPLOYMENTS.path(): EMPTY,
    DEFINITIONS.path(): EMPTY,
}


async def _answer(request: web.Request) -> web.StreamResponse:
    if "watch" not in request.query:
        return web.json_response(ANSWERS[request.path])
    response = web.StreamResponse()
    await response.prepare(request)
    if request.path == DEPLOYMENTS.path():
        await response.write(json.dumps(BROKEN).encode() + b"\n")
    await asyncio.Event().wait()
    return response


@pytest.fixture
async def registry() -> AsyncIterator[kopf.OperatorRegistry]:
    """The operator's own handlers, logged in to an API server whose watches fail."""
    app = web.Application()
    app.router.add_get("/{path:.*}", _answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    book = Book(WorkQueue(settle_s=0), ProductTable())
    tell = asyncio.get_running_loop().call_soon_threadsafe
    yield registry_for(book, book.set_lws_installed, Configuration(host=host), tell)
    await runner.cleanup()


async def test_a_watch_that_fails_is_heard_of(registry: kopf.OperatorRegistry) -> None:
    watching = Watching(registry)
    watching.start()
    try:
        await asyncio.wait([watching.ended], timeout=30)
        assert "no leader" in str(watching.ended.exception())
    finally:
        await watching.stop()


async def test_nobody_waits_for_an_end_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = threading.Event()

    async def spawn_tasks(**_: Any) -> list[asyncio.Task[None]]:
        forgotten.wait()
        return []

    monkeypatch.setattr(kopf, "spawn_tasks", spawn_tasks)
    monkeypatch.setattr(module, "STOP_S", 0.1)
    watching = Watching(kopf.OperatorRegistry())
    watching.start()
    await watching.stop()
    assert not watching.ended.done()
    forgotten.set()


async def test_what_keeps_the_watches_from_beginning_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    async def spawn_tasks(**_: Any) -> list[asyncio.Task[None]]:
        raise RuntimeError("kopf has changed")

    monkeypatch.setattr(kopf, "spawn_tasks", spawn_tasks)
    watching = Watching(kopf.OperatorRegistry())
    watching.start()
    with pytest.raises(RuntimeError, match="kopf has changed"):
        await watching.ended
