"""Writers run side by side, one for each model, while the loop goes on planning.

A model whose writer is still busy is looked at again when it is done. What a pass has decided is remembered
as promised until the pods have taken it up, so that no later pass gives the same GPUs away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from bowsprit.cluster.cache import ObjectKey
from bowsprit.cluster.errors import ClusterError
from bowsprit.controller.book import Book
from bowsprit.controller.frame import Frame
from bowsprit.controller.metrics import Metrics
from bowsprit.controller.steps import Steps
from bowsprit.controller.writer import NotLeading, Writer
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ModelPlan
from bowsprit.plan.wish import Wish
from bowsprit.status.observed import ApplyError
from bowsprit.status.replicas import RecordedReplica
from bowsprit.status.revisions import recorded_failure

log = structlog.get_logger()


@dataclass(slots=True)
class Model:
    """What the loop remembers of one model between passes."""

    frame: Frame
    wish: Wish | None
    plan: ModelPlan | None = None
    decided: tuple[RecordedReplica, ...] | None = None
    """The last plan, as promises; None until the first pass has decided."""
    errors: tuple[ApplyError, ...] = ()
    writer: asyncio.Task[None] | None = None
    again: bool = False
    """Something changed while the writer was busy."""
    held_back: bool = False
    """Its pods are there, and the GPUs that they are to have are not free yet."""
    paused: bool = False
    """Its pods are there, and one of its groups must not start yet."""


class Writers:
    """`status_of`: what is to be written of a model now; `most`: models that are written at the same time."""

    def __init__(
        self,
        book: Book,
        writer: Writer,
        metrics: Metrics,
        status_of: Callable[[Model], Mapping[str, Any]],
        most: int,
    ) -> None:
        self._book = book
        self._queue = book.queue
        self._writer = writer
        self._metrics = metrics
        self._status_of = status_of
        self._slots = asyncio.Semaphore(most)
        self._writing: set[asyncio.Task[None]] = set()

    def begin(self, model: Model, steps: Steps) -> None:
        """For a model without a writer."""
        model.held_back, model.paused = steps.held_back, steps.paused
        self._book.reservations.decide(steps.pins)
        model.writer = asyncio.create_task(self._write(model, steps))
        self._writing.add(model.writer)
        model.writer.add_done_callback(self._writing.discard)

    async def drain(self) -> None:
        """Waits for the writers that are under way."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    def with_latest_status(self, frame: Frame) -> Frame:
        """Our own writes change the status and make no new frame: what they said must not be said again."""
        known = self._book.models.get(ObjectKey(*frame.key))
        if known is None or known.uid != frame.declared.uid:
            return frame
        return replace(frame, declared=replace(frame.declared, status=known.status))

    def settle(self, key: ModelKey, errors: tuple[ApplyError, ...]) -> None:
        """What becomes of a model that was written: done, or tried again."""
        if not errors:
            self._queue.succeeded(key)
            return
        self._metrics.reconcile_errors.labels("Refused").inc()
        pause = self._queue.retry(key)
        told = [f"{error.target}: {error.message}" for error in errors]
        log.info("model.refused", model=str(key), errors=told, pause_s=round(pause, 1))

    async def _write(self, model: Model, steps: Steps) -> None:
        key = model.frame.key
        try:
            status = self._status_of(model)
            async with self._slots:
                errors = await self._writer.write(model.frame, status, steps)
                # Another revision is planned from now on, by what the status says.
                model.again |= recorded_failure(status) != recorded_failure(model.frame.declared.status)
                if errors != model.errors:
                    model.errors = errors
                    model.frame = self.with_latest_status(model.frame)
                    await self._writer.tell(model.frame, self._status_of(model))
        except (ClusterError, NotLeading) as error:
            self._metrics.reconcile_errors.labels(type(error).__name__).inc()
            pause = self._queue.retry(key)
            log.info("model.retry", model=str(key), error=str(error), pause_s=round(pause, 1))
        except Exception:
            log.exception("model.failed", model=str(key))
            self._queue.retry(key)
        else:
            self.settle(key, errors)
        finally:
            self._book.reservations.give_up(steps.pins)
            model.writer = None
            if model.again:
                model.again = False
                self._queue.add(key)
