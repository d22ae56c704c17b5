"""kopf's part: its watches of the small kinds, each handler one line into a cache.

Only event handlers: they leave the objects untouched (no annotations, no finalizers). kopf neither retries
them nor reports what a relist no longer shows; both are made up for by the caches, which are compared with
full lists regularly, and by the queue behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import kopf
from kubernetes.aio.client import Configuration

from bowsprit.api import v1alpha1
from bowsprit.cluster.cache import Cache
from bowsprit.cluster.resources import (
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    Resource,
)
from bowsprit.controller.book import Book
from bowsprit.render.labels import MANAGED_BY

OURS = f"{MANAGED_BY}=bowsprit"
"""Label selector of everything that Bowsprit has made."""

LWS_CRD = f"{LEADER_WORKER_SETS.plural}.{LEADER_WORKER_SETS.group}"

LOGIN_PAUSE_S = 5.0
"""Between attempts to get credentials, where a program gives them; kopf's own pause is a minute."""

Tell = Callable[..., object]
"""Calls a function with arguments where the caches live: kopf has a thread of its own."""


def registry_for(
    book: Book, lws_appeared: Callable[[bool], None], login: Configuration, tell: Tell
) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry, id="login", backoff=LOGIN_PAUSE_S)(_login_handler(login))
    _feed(registry, DEPLOYMENTS, book.children[DEPLOYMENTS], tell)
    _feed(registry, LEADER_WORKER_SETS, book.children[LEADER_WORKER_SETS], tell)

    @kopf.on.event("apiextensions.k8s.io", "v1", "customresourcedefinitions", registry=registry, id="crd")
    async def crd(event: kopf.RawEvent, name: str | None, **_: Any) -> None:
        if name == LWS_CRD:
            tell(lws_appeared, event["type"] != "DELETED")

    return registry


def _feed(registry: kopf.OperatorRegistry, resource: Resource, cache: Cache[Any], tell: Tell) -> None:
    @kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)
    async def seen(event: kopf.RawEvent, **_: Any) -> None:
        tell(cache.event, event["type"], event["object"])


def _login_handler(configuration: Configuration) -> Callable[..., Any]:
    async def handler(**_: Any) -> kopf.ConnectionInfo:
        return await connection_info(configuration)

    return handler


async def connection_info(configuration: Configuration) -> kopf.ConnectionInfo:
    """The official client's credentials, in kopf's form."""
    bearer = (await configuration.auth_settings()).get("BearerToken", {}).get("value")
    scheme, _, token = (bearer or "").partition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        scheme=scheme if token else None,
        token=token or None,
    )


def settings_for() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{v1alpha1.GROUP}/unused"
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 30
    settings.networking.request_timeout = 30
    settings.networking.error_backoffs = _Patience()
    for resource in (DEPLOYMENTS, LEADER_WORKER_SETS):
        settings.watching.label_selectors[resource.group, resource.version, resource.plural] = OURS
    return settings


class _NoDiffs(kopf.DiffBaseStorage):
    """Event handlers never look at differences; copying each object to find them is most of kopf's work."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


class _Patience:
    """Pauses between retries without end: an API server that restarts must not end the operator."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.2, 0.5, 1, 2, 3)
        while True:
            yield 5
