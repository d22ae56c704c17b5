"""Prometheus metrics of the operator, all computed from whole lists (never last-writer-wins)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bowsprit.plan.fleet import Fleet
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ModelPlan, Plan

PASS_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The metrics and their registry: one object per process, so that tests can have their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._last_pass = LastPass()
        registry.register(self._last_pass)
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
        self.resyncs = Counter(
            "bowsprit_resyncs_total",
            "Comparisons of the watched kinds with full lists.",
            registry=registry,
        )
        self.leader = Gauge("bowsprit_leader", "1 when this process holds the Lease.", registry=registry)

    def show(self, plan: Plan, fleet: Fleet, ready: Mapping[ModelKey, int]) -> None:
        """From now on the figures are those of this pass."""
        self._last_pass.show(plan, fleet, ready)


class LastPass(Collector):
    """What follows from the last pass, counted when somebody asks: passes are more frequent than scrapes."""

    def __init__(self) -> None:
        self._plan = Plan(())
        self._fleet = Fleet(())
        self._ready: Mapping[ModelKey, int] = {}

    def show(self, plan: Plan, fleet: Fleet, ready: Mapping[ModelKey, int]) -> None:
        self._plan, self._fleet, self._ready = plan, fleet, ready

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield self._gpus()
        wanted = _of_models("gpus_wanted", "GPUs that the model's replicas hold or wait for.")
        short = _of_models("gpus_short", "GPUs that the model's waiting replicas are short of.")
        replicas = _of_models("replicas", "Replicas by state (wanted, placed, ready).", "state")
        for model in self._plan.models:
            wanted.add_metric(model.key, _gpus_wanted(model))
            short.add_metric(model.key, model.refusal.gpus_short if model.refusal else 0)
            replicas.add_metric([*model.key, "wanted"], model.wanted)
            replicas.add_metric([*model.key, "placed"], len(model.replicas))
            replicas.add_metric([*model.key, "ready"], self._ready.get(model.key, 0))
        yield from (wanted, short, replicas)

    def _gpus(self) -> GaugeMetricFamily:
        counts: Tally[tuple[str, str]] = Tally()
        for node in self._fleet.nodes:
            counts[node.product, "free"] += node.free
            counts[node.product, "held"] += node.total - node.free
        for left in self._fleet.left_out:
            counts[left.product or "unknown", "left_out"] += left.gpus
        what = "GPUs by type and state (free, held, left_out)."
        family = GaugeMetricFamily("bowsprit_gpus", what, labels=["product", "state"])
        for labels, count in counts.items():
            family.add_metric(labels, count)
        return family


def _of_models(name: str, what: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"bowsprit_model_{name}", what, labels=["namespace", "model", *labels])


def _gpus_wanted(model: ModelPlan) -> int:
    placed = sum(replica.layout.gpus for replica in model.replicas)
    return placed + (model.refusal.gpus_wanted if model.refusal else 0)
