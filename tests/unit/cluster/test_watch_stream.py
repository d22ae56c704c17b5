"""The stream of a watch, over a real connection: how it may end, and what that means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from bowsprit.cluster import client as module
from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import Gone, Unavailable
from bowsprit.cluster.resources import PODS
from tests.unit.cluster.wire import Json, event, obj

Speech = Callable[[web.StreamResponse], Awaitable[None]]
ADDED = event("ADDED", obj("a", 11))


async def says(response: web.StreamResponse, *events: Json) -> None:
    for each in events:
        await response.write(json.dumps(each).encode() + b"\n")


async def falls_silent(response: web.StreamResponse) -> None:
    await says(response, ADDED)
    await asyncio.Event().wait()


async def ends(response: web.StreamResponse) -> None:
    await says(response, ADDED)


async def breaks_off(response: web.StreamResponse) -> None:
    await says(response, ADDED)
    await response.write(b'{"type": "ADD')


async def has_expired(response: web.StreamResponse) -> None:
    await says(response, ADDED, event("ERROR", {"kind": "Status", "code": 410, "message": "too old"}))


async def fails(response: web.StreamResponse) -> None:
    await says(response, ADDED, event("ERROR", {"kind": "Status", "code": 500, "message": "etcd"}))


async def speaks_at_length(response: web.StreamResponse) -> None:
    """An object of a megabyte, the most that etcd holds, is one line."""
    await says(response, event("ADDED", obj("a", 11, data="x" * 2**20)))


@pytest.fixture
async def watched(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[Speech], Awaitable[list[str]]]]:
    """Names that a watch has told when it ended, with a server that speaks so."""
    monkeypatch.setattr(module, "WATCH_SILENCE_S", 0.3)
    runners: list[web.AppRunner] = []
    clients: list[KubeClient] = []

    async def names(speech: Speech) -> list[str]:
        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await speech(response)
            return response

        app = web.Application()
        app.router.add_get("/api/v1/pods", handler)
        runners.append(web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1))
        await runners[-1].setup()
        await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
        host = f"http://127.0.0.1:{runners[-1].addresses[0][1]}"
        clients.append(KubeClient(ApiClient(configuration=Configuration(host=host))))
        return [each["object"]["metadata"]["name"] async for each in clients[-1].watch(PODS, "10")]

    yield names
    for client in clients:
        await client.close()
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize("speech", [ends, falls_silent, speaks_at_length])
async def test_it_ends_well_when_the_server(
    speech: Speech, watched: Callable[[Speech], Awaitable[list[str]]]
) -> None:
    assert await watched(speech) == ["a"]


@pytest.mark.parametrize(
    ("speech", "error"),
    [(breaks_off, Unavailable), (has_expired, Gone), (fails, Unavailable)],
    ids=["breaks off in a line", "has expired", "fails"],
)
async def test_it_ends_with_an_error_when_the_server(
    speech: Speech, error: type[Exception], watched: Callable[[Speech], Awaitable[list[str]]]
) -> None:
    with pytest.raises(error):
        await watched(speech)
