"""The one door to the API server: a few verbs over plain dicts.

Typed models of the official client cost about a millisecond a pod, so objects stay as they are on the wire;
the official client still does what is hard to do right: kubeconfig, in-cluster credentials, exec plugins and
token refresh, TLS, connection pooling.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import getproxies

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException

from bowsprit.cluster.decode import decode
from bowsprit.cluster.errors import ClusterError, Gone, NotServed, Unavailable, Unreachable, from_status
from bowsprit.cluster.kubeconfig import load
from bowsprit.cluster.resources import Resource

FIELD_MANAGER = "bowsprit"
REQUEST_TIMEOUT_S = 30
WATCH_TIMEOUT_S = 300
"""How long the API server keeps a watch open; bookmarks come about every minute."""
WATCH_SILENCE_S = 90
"""A watch without even a bookmark for so long may be dead, and is opened anew."""

Json = dict[str, Any]


class Form(NamedTuple):
    """What is asked of the API server when objects are read: the Accept headers of a list and of a watch."""

    listed: str
    watched: str


WHOLE = Form("application/json", "application/json")
METADATA_ONLY = Form(
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
)


class KubeClient:
    """Verbs on resources. Every failure is a ClusterError."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    @property
    def api(self) -> ApiClient:
        """The official client itself, for its own libraries (leader election)."""
        return self._api

    async def close(self) -> None:
        await self._api.close()

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        return await self._json("GET", resource.path(namespace, name))

    async def get_path(self, path: str) -> Json:
        """Any other document of the API server, such as a discovery page."""
        return await self._json("GET", path)

    async def pages(
        self,
        resource: Resource,
        *,
        selector: str | None = None,
        fields: str | None = None,
        namespace: str | None = None,
        page_size: int = 500,
        form: Form = WHOLE,
    ) -> AsyncIterator[Json]:
        """The list in chunks: each page is a list document with `items` and `metadata.resourceVersion`."""
        query: dict[str, str] = {"limit": str(page_size)}
        query |= _selectors(selector, fields)
        while True:
            page = await self._json("GET", resource.path(namespace), query, accept=form.listed)
            yield page
            token = page.get("metadata", {}).get("continue")
            if not token:
                return
            query["continue"] = token

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        *,
        selector: str | None = None,
        fields: str | None = None,
        namespace: str | None = None,
        form: Form = WHOLE,
    ) -> AsyncIterator[Json]:
        """Watch events, bookmarks too, until the server ends the stream or says nothing for long.

        Gone when the version is too old.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_TIMEOUT_S),
        }
        query |= _selectors(selector, fields)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_TIMEOUT_S, sock_read=WATCH_SILENCE_S)
        async with self._request(
            "GET", resource.path(namespace), query, accept=form.watched, limits=limits
        ) as response:
            try:
                async for line in response.content:
                    event: Json = decode(line)
                    if event.get("type") == "ERROR":
                        raise _error_event(event)
                    yield event
            except TimeoutError:
                # Silence may mean a dead connection, and is no reason to list everything again.
                return

    async def apply(self, resource: Resource, manifest: Mapping[str, Any]) -> Json:
        """Server-side apply as the one field manager; our fields are taken back from whoever set them."""
        meta = manifest["metadata"]
        return await self._json(
            "PATCH",
            resource.path(meta.get("namespace"), meta["name"]),
            {"fieldManager": FIELD_MANAGER, "force": "true"},
            body=dict(manifest),
            content_type="application/apply-patch+yaml",
        )

    async def merge_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Mapping[str, Any],
        subresource: str | None = None,
    ) -> Json:
        return await self._json(
            "PATCH",
            resource.path(namespace, name, subresource),
            {"fieldManager": FIELD_MANAGER},
            body=dict(patch),
            content_type="application/merge-patch+json",
        )

    async def json_patch(
        self, resource: Resource, namespace: str | None, name: str, operations: Sequence[Mapping[str, Any]]
    ) -> Json:
        return await self._json(
            "PATCH",
            resource.path(namespace, name),
            {"fieldManager": FIELD_MANAGER},
            body=[dict(operation) for operation in operations],
            content_type="application/json-patch+json",
        )

    async def create(self, resource: Resource, namespace: str | None, manifest: Mapping[str, Any]) -> Json:
        return await self._json(
            "POST", resource.path(namespace), {"fieldManager": FIELD_MANAGER}, body=dict(manifest)
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        grace_seconds: int | None = None,
    ) -> None:
        """Deletes exactly that object (uid), dependents in the background; NotFound, Conflict: it is gone."""
        options: Json = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._json("DELETE", resource.path(namespace, name), body=options)

    async def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Json:
        limits = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
        async with self._request(
            method, path, query, body=body, content_type=content_type, accept=accept, limits=limits
        ) as response:
            answer: Json = decode(await response.read())
            return answer

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        limits: aiohttp.ClientTimeout,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Content-Type": content_type, "Accept": accept, "User-Agent": FIELD_MANAGER}
        url = f"{self._api.configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            answer = await self._api.call_api(method, url, headers, body, _request_timeout=limits)
            async with answer.response as response:
                if response.status >= 400:
                    raise _failure(path, await response.read(), response.status)
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _no_answer(self._api.configuration.host, f"{method} {path}", error) from error


def _no_answer(server: str, request: str, error: Exception) -> Unavailable:
    """Which server it is that cannot be reached; what broke off later is told of the request."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return Unreachable(f"{server} cannot be reached: {_reason(error)}")
    if isinstance(error, TimeoutError):
        return Unreachable(f"{server} gives no answer within {REQUEST_TIMEOUT_S} s")
    return Unavailable(f"{request}: {type(error).__name__} {error}")


def _reason(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    if isinstance(cause, ssl.SSLError | socket.gaierror) or not cause.errno:
        return cause.strerror or str(cause)
    proxied = isinstance(error, aiohttp.ClientProxyConnectionError)
    return os.strerror(cause.errno) + (f" by the proxy {error.host}:{error.port}" if proxied else "")


def _failure(path: str, body: bytes, status: int) -> ClusterError:
    """A 404 about an object names it; one about a kind is a bare page, or a Status without a name."""
    try:
        answer = json.loads(body)
        message, details = str(answer["message"]), answer.get("details") or {}
    except (ValueError, KeyError, TypeError):
        message, details = f"HTTP {status}: {body[:300].decode(errors='replace').strip()}", {}
    if status == 404 and not details.get("name"):
        unserved = f"the API server does not serve {path}: its definition is not installed, or still new"
        return NotServed(unserved, status)
    return from_status(status, message)


def _selectors(labels: str | None, fields: str | None) -> dict[str, str]:
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in selectors.items() if text}


def _error_event(event: Json) -> Exception:
    status = event.get("object", {})
    code = status.get("code", 500)
    message = str(status.get("message", "watch error"))
    return Gone(message, code) if code == 410 else from_status(code, message)


async def connect(kubeconfig: str | None = None, context: str | None = None) -> KubeClient:
    """A client by kubeconfig ($KUBECONFIG or ~/.kube/config when None), or with the pod's own account.

    Raises ConfigException when there is neither, or one that cannot be used.
    """
    configuration = Configuration()
    where = await load(configuration, kubeconfig, context)
    configuration.retries = 0
    # Without a proxy the environment has nothing to say; aiohttp would read ~/.netrc before each request.
    configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
    try:
        return KubeClient(ApiClient(configuration=configuration))
    except ssl.SSLError:
        raise ConfigException(f"{where}: a certificate or key of it cannot be used") from None
