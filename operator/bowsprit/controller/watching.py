"""kopf at work, in a thread and a loop of its own.

It takes the signals of the main thread for itself, and at its end cancels every task of its loop, whoever has
started it. That end may never come: a watch that is just being opened can miss that it is cancelled, and the
loop waits for the thread that waits for the stop flag. So nobody waits for it: when the first of kopf's tasks
has ended, the operator is told at once, or it would go on deaf.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import kopf

from bowsprit.cluster.client import FIELD_MANAGER
from bowsprit.controller.handlers import settings_for

STOP_S = 5.0
"""How long an end in order may take; nothing is lost without it."""


class Watching:
    def __init__(self, registry: kopf.OperatorRegistry) -> None:
        self._registry = registry
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when the watches have ended; raises what has ended them."""

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stop.set()
        await asyncio.to_thread(self._thread.join, STOP_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except Exception as error:  # noqa: BLE001 - it is told where it is waited for
            self._tell(error)

    async def _watch(self) -> None:
        tasks = await kopf.spawn_tasks(
            registry=self._registry,
            settings=settings_for(),
            # Nobody is told it. Left out, kopf asks for the user's name, which a container may not have.
            identity=FIELD_MANAGER,  # type: ignore[arg-type] # a str by a name that kopf does not export
            clusterwide=True,
            standalone=True,
            stop_flag=self._stop,
        )
        for task in tasks:
            task.add_done_callback(self._task_ended)
        await kopf.run_tasks(tasks)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tell(None if task.cancelled() else task.exception())

    def _tell(self, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the operator has ended before
            self._loop.call_soon_threadsafe(self._end, error)

    def _end(self, error: BaseException | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)
