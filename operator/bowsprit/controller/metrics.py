"""Prometheus metrics of the operator, all computed from whole lists (never last-writer-wins)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from bowsprit.plan.fleet import Fleet
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import Plan

PASS_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The metrics and their registry: one object per process, so that tests can have their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._shown: set[ModelKey] = set()
        self.queue_depth = Gauge(
            "bowsprit_queue_depth", "Keys that wait for the next planning pass.", registry=registry
        )
        self.queue_delayed = Gauge(
            "bowsprit_queue_delayed", "Keys that wait for a pause to end.", registry=registry
        )
        self.reconcile_seconds = Histogram(
            "bowsprit_reconcile_duration_seconds",
            "Time of a whole pass: gather, plan, write.",
            buckets=PASS_BUCKETS_S,
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "bowsprit_reconcile_errors_total",
            "Models whose writes failed in a pass and are tried again.",
            ["kind"],
            registry=registry,
        )
        self.plan_seconds = Histogram(
            "bowsprit_plan_duration_seconds",
            "Time of the planner itself.",
            buckets=PASS_BUCKETS_S,
            registry=registry,
        )
        self.gpus = Gauge(
            "bowsprit_gpus",
            "GPUs by type and state (free, held, left_out).",
            ["product", "state"],
            registry=registry,
        )
        self.model_gpus_wanted = Gauge(
            "bowsprit_model_gpus_wanted",
            "GPUs that the model's replicas hold or wait for.",
            ["namespace", "model"],
            registry=registry,
        )
        self.model_gpus_short = Gauge(
            "bowsprit_model_gpus_short",
            "GPUs that the model's waiting replicas are short of.",
            ["namespace", "model"],
            registry=registry,
        )
        self.model_replicas = Gauge(
            "bowsprit_model_replicas",
            "Replicas by state (wanted, placed, ready).",
            ["namespace", "model", "state"],
            registry=registry,
        )
        self.resyncs = Counter(
            "bowsprit_resyncs_total",
            "Comparisons of the watched kinds with full lists.",
            registry=registry,
        )
        self.leader = Gauge("bowsprit_leader", "1 when this process holds the Lease.", registry=registry)

    def show(self, plan: Plan, fleet: Fleet, ready: Mapping[ModelKey, int]) -> None:
        """Sets every gauge that follows from one pass."""
        self._show_gpus(fleet)
        for gone in self._shown - plan.by_key.keys():
            self._forget(gone)
        self._shown = set(plan.by_key)
        for model in plan.models:
            labels = model.key
            short = model.refusal.gpus_short if model.refusal else 0
            placed = sum(replica.layout.gpus for replica in model.replicas)
            wanted = placed + (model.refusal.gpus_wanted if model.refusal else 0)
            self.model_gpus_wanted.labels(*labels).set(wanted)
            self.model_gpus_short.labels(*labels).set(short)
            self.model_replicas.labels(*labels, "wanted").set(model.wanted)
            self.model_replicas.labels(*labels, "placed").set(len(model.replicas))
            self.model_replicas.labels(*labels, "ready").set(ready.get(model.key, 0))

    def _forget(self, key: ModelKey) -> None:
        """A model that is gone, or asks for nothing that can be planned, has no figures."""
        for gauge in (self.model_gpus_wanted, self.model_gpus_short):
            _drop(gauge, *key)
        for state in ("wanted", "placed", "ready"):
            _drop(self.model_replicas, *key, state)

    def _show_gpus(self, fleet: Fleet) -> None:
        counts: Tally[tuple[str, str]] = Tally()
        for node in fleet.nodes:
            counts[node.product, "free"] += node.free
            counts[node.product, "held"] += node.total - node.free
        for left in fleet.left_out:
            counts[left.product or "unknown", "left_out"] += left.gpus
        self.gpus.clear()
        for (product, state), count in counts.items():
            self.gpus.labels(product, state).set(count)


def _drop(gauge: Gauge, *labels: str) -> None:
    with suppress(KeyError):
        gauge.remove(*labels)
