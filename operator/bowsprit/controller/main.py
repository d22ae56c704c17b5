"""The operator process: connects the parts, starts them in order, stops them in reverse.

Watches and caches run from the start on every replica of the operator; only the holder of the Lease plans and
writes. Losing the Lease ends the process: whoever restarts it starts clean.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import signal
import socket
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from bowsprit.api.names import PREFLIGHT_LABEL
from bowsprit.cluster.client import METADATA_ONLY, KubeClient, connect
from bowsprit.cluster.errors import ClusterError, NotServed
from bowsprit.cluster.lease import Leadership
from bowsprit.cluster.listwatch import ListWatch
from bowsprit.cluster.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEADER_WORKER_SETS,
    MODEL_DEPLOYMENTS,
    NODES,
    PODS,
    SERVICES,
)
from bowsprit.controller import handlers, logs
from bowsprit.controller.book import Book
from bowsprit.controller.complaints import FAILED_CREATE
from bowsprit.controller.factsource import FactSource
from bowsprit.controller.metrics import Metrics
from bowsprit.controller.queue import WorkQueue
from bowsprit.controller.reconcile import Reconciler
from bowsprit.controller.server import StatusServer
from bowsprit.controller.settings import Settings
from bowsprit.controller.watching import Watching
from bowsprit.controller.writer import Writer
from bowsprit.plan.key import ModelKey

log = structlog.get_logger()

RETRY_S = 0.2

STUCK_S = 120.0
"""A queue that has not moved for so long while keys are due means that the process hangs."""


def run(settings: Settings) -> int:
    """Runs the operator until SIGTERM or SIGINT; the exit code is 1 when the Lease was lost."""
    logs.configure()
    return asyncio.run(_main(settings))


async def _main(settings: Settings) -> int:
    client = await connect(settings.kubeconfig, settings.context)
    try:
        return await Operator(settings, client).run()
    finally:
        await client.close()


@dataclass(slots=True)
class _Feeds:
    """Everything that keeps the caches equal to the API server."""

    watched: list[ListWatch]
    """Own list-watches."""
    listed: list[ListWatch]
    """Kinds that kopf watches: listed at the start and from time to time."""
    lws: ListWatch
    promises: list[ListWatch]
    """Those of the above that show what GPUs are promised to whom."""


class Operator:
    def __init__(self, settings: Settings, client: KubeClient) -> None:
        self._settings = settings
        self._client = client
        self._queue: WorkQueue[ModelKey] = WorkQueue(settings.settle_s)
        self._book = Book(self._queue, settings.products)
        self._metrics = Metrics()
        identity = settings.identity or f"{socket.gethostname()}-{os.getpid()}"
        self._leadership = Leadership(client, settings.lease_name, settings.lease_namespace, identity)
        writer = Writer(client, self._book, self._leadership.holds, now)
        facts = FactSource(client, self._book, settings.runtime_image)
        self._reconciler = Reconciler(self._book, facts, writer, self._metrics, settings)
        self._feeds = self._make_feeds()
        self._server = StatusServer(self._metrics.registry, self._unhealthy, self._unready)
        self._stop = asyncio.Event()
        self._synced = asyncio.Event()
        self._leading = asyncio.Event()
        self._lost = False
        registry = handlers.registry_for(
            self._book,
            self._book.set_lws_installed,
            client.api.configuration,
            asyncio.get_running_loop().call_soon_threadsafe,
        )
        self._watching = Watching(registry)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._stop.set)
        port = await self._server.start(self._settings.listen_host, self._settings.listen_port)
        log.info("operator.started", port=port)
        parts = [asyncio.create_task(part) for part in self._parts()]
        self._watching.start()
        stopped = asyncio.create_task(self._stop.wait())
        ends: list[asyncio.Future[Any]] = [stopped, self._watching.ended, *parts]
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        await self._shut_down([stopped, *parts])
        if self._lost:
            return 1
        for part in done - {stopped}:
            raise part.exception() or RuntimeError("a part of the operator ended")
        log.info("operator.stopped")
        return 0

    def _parts(self) -> list[Coroutine[Any, Any, None]]:
        return [
            *(feed.run() for feed in self._feeds.watched),
            self._resync(),
            self._campaign(),
            self._plan(),
        ]

    async def _shut_down(self, tasks: list[asyncio.Task[Any]]) -> None:
        """Lets the writes under way finish, gives the Lease back, then stops everything."""
        for task in tasks:
            task.cancel()
        try:
            await asyncio.wait_for(self._reconciler.drain(), timeout=10)
        except TimeoutError:
            log.warning("operator.drain_timeout")
        await self._leadership.release()
        await asyncio.gather(*tasks, self._watching.stop(), return_exceptions=True)
        await self._server.stop()

    async def _campaign(self) -> None:
        await self._leadership.campaign(self._lease_acquired, self._lease_lost)

    async def _plan(self) -> None:
        """Plans and writes from the moment on when the Lease is ours and the caches are full."""
        await self._leading.wait()
        if self._synced.is_set():
            await self._catch_up()
        await self._synced.wait()
        await self._reconciler.run()

    async def _catch_up(self) -> None:
        """What the last leader promised and pinned may not have come by our watches yet."""
        for feed in self._feeds.promises:
            done = await self._relist(feed)
            while not done:
                await asyncio.sleep(RETRY_S)
                done = await self._relist(feed)

    async def _lease_acquired(self) -> None:
        log.info("lease.acquired")
        self._metrics.leader.set(1)
        self._leading.set()

    async def _lease_lost(self) -> None:
        log.error("lease.lost")
        self._metrics.leader.set(0)
        self._lost = True
        self._stop.set()

    async def _resync(self) -> None:
        """Fills the caches that kopf feeds, and compares them with full lists from time to time."""
        while True:
            for feed in (*self._feeds.listed, self._feeds.lws):
                await self._relist(feed)
            self._metrics.resyncs.inc()
            if self._book.synced:
                self._synced.set()
            await asyncio.sleep(self._settings.resync_s if self._book.synced else RETRY_S)

    async def _relist(self, feed: ListWatch) -> bool:
        """Whether it went."""
        try:
            await feed.relist()
        except NotServed as error:
            if feed is self._feeds.lws and not await self._lws_defined():
                self._book.set_lws_installed(False)
            else:
                log.warning("resync.retry", error=error.message)
        except ClusterError as error:
            log.warning("resync.retry", error=error.message)
        else:
            if feed is self._feeds.lws:
                self._book.set_lws_installed(True)
            return True
        return False

    async def _lws_defined(self) -> bool:
        """Whether LeaderWorkerSet has a definition: an API server that starts may not serve it yet."""
        try:
            found = await self._client.get_path(
                f"{DEFINITIONS.path()}?fieldSelector=metadata.name%3D{handlers.LWS_CRD}"
            )
        except ClusterError:
            return True
        return bool(found["items"])

    def _make_feeds(self) -> _Feeds:
        models = ListWatch(self._client, MODEL_DEPLOYMENTS, self._book.models)
        pods = ListWatch(self._client, PODS, self._book.pods)
        client, book, ours = self._client, self._book, handlers.OURS
        children = book.children
        return _Feeds(
            watched=[
                models,
                ListWatch(client, NODES, book.nodes),
                pods,
                ListWatch(client, CONFIG_MAPS, book.config_maps, form=METADATA_ONLY),
                ListWatch(client, CONFIG_MAPS, children[CONFIG_MAPS], selector=PREFLIGHT_LABEL),
                ListWatch(client, JOBS, children[JOBS], selector=PREFLIGHT_LABEL),
                ListWatch(client, PODS, book.attempts, selector=PREFLIGHT_LABEL),
                ListWatch(client, CONTROLLER_REVISIONS, children[CONTROLLER_REVISIONS], selector=ours),
                ListWatch(client, SERVICES, children[SERVICES], selector=ours),
                ListWatch(client, EVENTS, book.complaints, fields=FAILED_CREATE),
            ],
            listed=[ListWatch(client, DEPLOYMENTS, children[DEPLOYMENTS], selector=ours)],
            lws=ListWatch(client, LEADER_WORKER_SETS, children[LEADER_WORKER_SETS], selector=ours),
            promises=[models, pods],
        )

    def _unhealthy(self) -> str | None:
        silent = asyncio.get_running_loop().time() - self._reconciler.last_pass
        if len(self._queue) and self._leadership.holds() and silent > STUCK_S:
            return f"no planning pass for {silent:.0f} s while {len(self._queue)} keys wait"
        return None

    def _unready(self) -> str | None:
        return None if self._book.synced else "the caches are still being filled"


def now() -> str:
    """The time as Kubernetes writes it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
