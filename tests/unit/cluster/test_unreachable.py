"""An API server that does not answer: which one, and why, in words that no library has chosen."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import ApiClient, Configuration

from bowsprit.cluster import client as module
from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import Unavailable, Unreachable
from bowsprit.cluster.resources import NODES


async def refusal(server: str, **session: Any) -> Unavailable:
    """What reading the nodes of that server ends in."""
    configuration = Configuration(host=server)
    configuration.retries = 0
    configuration.client_session_kwargs = session
    client = KubeClient(ApiClient(configuration=configuration))
    try:
        with pytest.raises(Unavailable) as caught:
            _ = [page async for page in client.pages(NODES)]
        return caught.value
    finally:
        await client.close()


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def test_nothing_listens() -> None:
    server = f"https://127.0.0.1:{closed_port()}"
    found = await refusal(server)
    assert isinstance(found, Unreachable)
    assert found.message == f"{server} cannot be reached: Connection refused"


async def test_a_name_that_nobody_knows() -> None:
    found = await refusal("https://nowhere.invalid:6443")
    assert isinstance(found, Unreachable)
    assert found.message.startswith("https://nowhere.invalid:6443 cannot be reached: ")
    assert "ClientConnector" not in found.message


async def test_a_server_that_speaks_no_tls() -> None:
    async with TestServer(web.Application()) as plain:
        server = f"https://127.0.0.1:{plain.port}"
        found = await refusal(server)
    assert isinstance(found, Unreachable)
    assert found.message.startswith(f"{server} cannot be reached: [SSL")


async def test_a_proxy_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    port = closed_port()
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("no_proxy", "")
    found = await refusal("https://cluster.example:6443", trust_env=True)
    assert found.message == (
        f"https://cluster.example:6443 cannot be reached: Connection refused by the proxy 127.0.0.1:{port}"
    )


async def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = await refusal(server)
    assert isinstance(found, Unreachable)
    assert found.message == f"{server} gives no answer within 0.05 s"


async def test_an_address_that_is_none() -> None:
    found = await refusal("nonsense")
    assert "nonsense" in found.message
