"""The loop: take what changed, gather frames, plan everything once, write what differs.

A pass plans all models over one snapshot and then hands the models that need writing to their writers
(writers.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import structlog

from bowsprit.cluster.cache import ObjectKey
from bowsprit.cluster.errors import ClusterError
from bowsprit.controller.admitted import Admitted
from bowsprit.controller.book import FLEET, Book
from bowsprit.controller.complaints import refusals
from bowsprit.controller.factsource import FactSource
from bowsprit.controller.frame import Declared, Frame, frame_of, is_known_by, promising, wish_from
from bowsprit.controller.groups import GroupId, placed
from bowsprit.controller.knowledge import Knowledge
from bowsprit.controller.metrics import Metrics
from bowsprit.controller.placement import Failures, rested
from bowsprit.controller.preflight import proof_of
from bowsprit.controller.replicas import recorded
from bowsprit.controller.settings import Settings
from bowsprit.controller.steps import PinId, steps_of
from bowsprit.controller.units import units_of
from bowsprit.controller.writer import NotLeading, Writer
from bowsprit.controller.writers import Model, Writers
from bowsprit.inventory.pods import PodView
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.key import ModelKey
from bowsprit.plan.planner import plan as plan_all
from bowsprit.plan.result import ModelPlan
from bowsprit.plan.spare import Spare
from bowsprit.render.budgets import progress_seconds
from bowsprit.status.compute import compute
from bowsprit.status.failure import seconds_left
from bowsprit.status.observed import Observed
from bowsprit.status.replicas import RecordedReplica
from bowsprit.status.revisions import recorded_progress

log = structlog.get_logger()


@dataclass(slots=True)
class _Pass:
    """What all models of one pass share."""

    changed: set[ModelKey]
    fleet: Fleet
    free: Spare
    unanswered: frozenset[PinId]
    paused: frozenset[GroupId]


class Reconciler:
    def __init__(
        self, book: Book, facts: FactSource, writer: Writer, metrics: Metrics, settings: Settings
    ) -> None:
        self._book = book
        self._queue = book.queue
        self._facts = facts
        self._writer = writer
        self._metrics = metrics
        self._failures = Failures(settings.bind_timeout_s)
        self._admitted = Admitted()
        book.pod_seen = self._pod_seen
        self._writers = Writers(book, writer, metrics, self._status, settings.writers)
        self._models: dict[ModelKey, Model] = {}
        self.last_pass = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Passes until cancelled."""
        while True:
            await self.step()

    async def step(self) -> None:
        """Waits until something is due and makes one pass; its writers go on afterwards."""
        keys = await self._queue.take()
        with self._metrics.reconcile_seconds.time():
            await self._pass(keys)
        self.last_pass = asyncio.get_running_loop().time()
        self._metrics.queue_depth.set(len(self._queue))
        self._metrics.queue_delayed.set(self._queue.delayed)

    async def drain(self) -> None:
        """Waits for the writers that are under way."""
        await self._writers.drain()

    async def _pass(self, keys: set[ModelKey]) -> None:
        alive = await self._read((keys - {FLEET}) | self._due_again())
        # From here to the planner nothing waits: frames, fleet and pins are of one instant.
        now = asyncio.get_running_loop().time()
        self._failures.observe((pod for key in alive for pod in self._book.pods_of(key)), now)
        self._failures.forget_all_but(self._book.pods, now)
        for declared, knowledge in alive.values():
            self._look(declared, knowledge, now)
        fleet = rested(self._book.ledger.fleet(), self._failures.at_rest(now))
        wishes = [model.wish for model in self._models.values() if model.wish is not None]
        work = _Pass(
            set(alive),
            fleet,
            self._free(fleet),
            self._book.reservations.unanswered,
            self._failures.backoff.paused(now),
        )
        with self._metrics.plan_seconds.time():
            plan = await asyncio.to_thread(plan_all, wishes, fleet)
        for key in sorted(self._models):
            self._decide(key, plan.by_key.get(key), work)
        self._metrics.show(plan, fleet, {key: model.frame.ready for key, model in self._models.items()})
        self._wake(now)

    def _free(self, fleet: Fleet) -> Spare:
        """What pins may take now."""
        free = Spare(fleet.nodes)
        for thing, amount in self._book.reservations.load().items():
            free[thing] -= amount
        return free

    def _due_again(self) -> set[ModelKey]:
        """Models to look at though nothing of theirs has changed: a clock ran out or runs, or they wait for
        GPUs that are not free yet."""
        now = asyncio.get_running_loop().time()
        late = {key for key, pods in self._unbound() if any(self._failures.overdue(pod, now) for pod in pods)}
        waiting = {key for key, model in self._models.items() if model.held_back or model.paused}
        return late | waiting | self._admitted.forget_old(now)

    def _unbound(self) -> Iterator[tuple[ModelKey, list[PodView]]]:
        """Pods that have their node and are not bound to it yet, by model."""
        for key in self._models:
            pods = [pod for pod in self._book.pods_of(key) if placed(pod) and not pod.bound]
            if pods:
                yield key, pods

    async def _read(self, keys: set[ModelKey]) -> dict[ModelKey, tuple[Declared, Knowledge]]:
        """The models that changed, with their facts; those that are gone are forgotten and swept up.

        Reading takes time, in which more may change. What needs no reading is taken in at the end; what does
        is for the next pass, or a stream of new models would put off this one for ever.
        """
        found = await asyncio.gather(*(self._read_one(key) for key in keys))
        alive = {key: model for key, model in zip(keys, found, strict=True) if model is not None}
        for key in self._queue.take_more() - {FLEET}:
            declared = self._book.models.get(ObjectKey(*key))
            if declared is None or declared.terminating:
                self._forget(key)
                alive.pop(key, None)
                self._queue.add(key)
            elif self._facts.is_read(declared):
                alive[key] = declared, await self._facts.read(declared)
            else:
                self._queue.add(key)
        return alive

    async def _read_one(self, key: ModelKey) -> tuple[Declared, Knowledge] | None:
        """A model and its facts; None when it is gone, or has changed and cannot be read: then it stays as it
        was. It must not stop the others."""
        declared = self._book.models.get(ObjectKey(*key))
        try:
            if declared is None or declared.terminating:
                self._forget(key)
                self._writers.settle(key, await self._writer.sweep(key, self._book.children_of(key)))
                return None
            return declared, await self._facts.read(declared)
        except (ClusterError, NotLeading) as error:
            pause = self._queue.retry(key)
            log.warning("model.unread", model=str(key), error=str(error), pause_s=round(pause, 1))
        except Exception:
            log.exception("model.unreadable", model=str(key))
            self._queue.retry(key)
        known = self._models.get(key)
        if declared is None or known is None:
            return None
        if known.frame.declared.uid != declared.uid:
            self._forget(key)
            return None
        return (declared, known.frame.knowledge) if is_known_by(declared, known.frame.declared) else None

    def _forget(self, key: ModelKey) -> None:
        self._models.pop(key, None)
        self._facts.forget(key)
        self._admitted.forget(key)

    def _pod_seen(self, pod: PodView) -> None:
        """At once and not in the next pass: by then a pod that failed may be replaced and gone."""
        self._failures.observe([pod], asyncio.get_running_loop().time())

    def _look(self, declared: Declared, knowledge: Knowledge, now: float) -> None:
        try:
            self._refresh(declared, knowledge, now)
        except Exception:
            # One model that cannot be understood must not stop the others.
            log.exception("model.unreadable", model=str(declared.key))
            self._queue.retry(declared.key)

    def _refresh(self, declared: Declared, knowledge: Knowledge, now: float) -> None:
        known = self._models.get(declared.key)
        same = known is not None and known.frame.declared.uid == declared.uid
        decided = known.decided if known is not None and same else None
        frame = frame_of(
            declared,
            knowledge,
            children=self._book.children_of(declared.key),
            pods=self._book.pods_of(declared.key),
            attempts=self._book.attempts_of(declared.key),
            recorded=recorded(declared.status, decided),
            is_broken=self._is_broken,
        )
        self._failures.settle(frame.groups)
        wish = wish_from(frame, self._book.lws_installed)
        if wish is not None:
            wish = self._admitted.meet(frame, wish, now)
        if known is not None and same:
            known.frame, known.wish = frame, wish
        else:
            self._models[declared.key] = Model(frame, wish)

    def _is_broken(self, pod: PodView) -> bool:
        lost = bool(pod.node) and placed(pod) and self._book.node(pod.node) is None
        ended = pod.finished and not pod.terminating
        return lost or ended or self._failures.dooms(pod)

    def _is_lost(self, node: str) -> bool:
        view = self._book.node(node)
        return view is None or not view.ready

    def _decide(self, key: ModelKey, plan: ModelPlan | None, work: _Pass) -> None:
        """Notes what was decided for one model and starts its writer when something has to be written."""
        model = self._models[key]
        if plan == model.plan and key not in work.changed:
            return
        model.plan = plan
        if plan is not None:
            revision = model.frame.target.hash if model.frame.target else ""
            model.decided = tuple(RecordedReplica(revision, replica) for replica in plan.replicas)
            self._promise(model, plan)
        if model.writer is not None:
            model.again = True
            return
        model.frame = self._writers.with_latest_status(model.frame)
        lost = {node for node in model.frame.nodes if self._is_lost(node)}
        steps = steps_of(model.frame, plan, work.free, lost, unanswered=work.unanswered, paused=work.paused)
        self._writers.begin(model, steps)

    def _promise(self, model: Model, plan: ModelPlan) -> None:
        if model.wish is not None:
            model.wish = promising(model.wish, plan)
        if any(promise not in plan.replicas for _, promise in model.frame.replicas.partial):
            # The group that has begun to take it up must go, and nothing else may happen to the model.
            self._queue.add(model.frame.key)

    def _status(self, model: Model) -> dict[str, Any]:
        observed, now = self._observed(model), self._writer.now()
        status = compute(observed, model.frame.declared.status, now)
        if progress := recorded_progress(status, observed.target):
            self._queue.add_after(observed.key, seconds_left(progress, observed.deadline_seconds, now) + 1)
        return status

    def _observed(self, model: Model) -> Observed:
        frame = model.frame
        deployment = frame.declared.deployment
        return Observed(
            key=frame.key,
            generation=frame.declared.generation,
            spec=deployment.spec if deployment else None,
            faults=frame.declared.faults,
            facts=frame.facts,
            plan=model.plan,
            units=units_of(frame, self._is_lost, self._failures.of),
            target=frame.asked.hash if frame.asked else None,
            stand_in=frame.target.hash if frame.target and frame.stands_in else None,
            serving=frame.serving,
            fallback=frame.fallback,
            deadline_seconds=_deadline_seconds(frame),
            lws_installed=self._book.lws_installed,
            apply_errors=model.errors,
            held_back=model.held_back,
            growth=self._admitted.told(frame),
            proof=proof_of(frame, self._book.nodes),
            refused_pods=refusals(frame, self._book.complaint_about),
        )

    def _wake(self, now: float) -> None:
        """Comes back by itself when a clock runs out."""
        pods = (pod for _, unbound in self._unbound() for pod in unbound)
        clocks = self._failures.next_wake(pods, now), self._admitted.next_wake(now)
        pauses = [pause for pause in clocks if pause is not None]
        if pauses:
            self._queue.add_after(FLEET, min(pauses) + 0.1)


def _deadline_seconds(frame: Frame) -> float:
    deployment, asked = frame.declared.deployment, frame.asked
    if deployment is None or asked is None:
        return inf
    return progress_seconds(deployment.spec, asked.weight_bytes)
