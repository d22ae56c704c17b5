"""From `kubectl apply` of 200 one-pod models to all pods bound, beside the same Deployments without gates.

Both ways run in one control plane, in turns, under fresh names, with the flags of controller manager and
scheduler at their defaults; the operator runs only in its own rounds. The reference applies the Deployments
that Bowsprit rendered, less gates and owner. Target: at most 1.5 times as long.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.figure import Figure
from bench.observe import PATIENCE_S, AuditLog, settled
from bench.stage import Stage, a100_node, config_map, model, stage
from e2e.cluster.nodes import create_nodes
from e2e.cluster.waiting import wait_until

MODELS = 200
NODES = 30
ROUNDS = 2
TEMPLATE = "warm-0000"
REFILL_S = 5.0
"""Clients of the controllers may burst 30 to 100 requests: both ways begin with the same credit."""

DEPLOYMENTS = "apis/apps/v1/deployments"
LEFTOVERS = (
    DEPLOYMENTS,
    "apis/apps/v1/replicasets",
    "apis/apps/v1/controllerrevisions",
    "apis/bowsprit.dev/v1alpha1/modeldeployments",
    "api/v1/pods",
    "api/v1/services",
)


def measure() -> list[Figure]:
    ours, plain = [], []
    with stage() as on:
        create_nodes(on.cluster.kubeconfig, [a100_node(f"bench-{index}") for index in range(NODES)])
        rendered = _rendered(on)
        for number in range(ROUNDS):
            if number % 2 == 0:
                ours.append(_models(on, number))
            plain.append(_deployments(on, number, rendered))
            if number % 2 == 1:
                ours.append(_models(on, number))
    ratio = median(ours) / median(plain)
    return [
        Figure(
            f"apply of {MODELS} models until all pods are bound",
            ratio,
            f"times as long ({_listed(ours)} s)",
            "at most 1.5 times",
            ratio <= 1.5,
            f"{MODELS} Deployments without gates: {_listed(plain)} s",
        )
    ]


def _rendered(on: Stage) -> str:
    """A Deployment as Bowsprit renders it, less gates and owner: JSON with the model's name in it."""
    with on.operator():
        on.kubectl("apply", "-f", str(on.file("warm.yaml", [config_map(TEMPLATE), model(TEMPLATE)])))
        wait_until("the warm-up model", lambda: on.count(DEPLOYMENTS) == 1, PATIENCE_S)
        found = json.loads(on.kubectl("get", "deployments", "-o", "json"))["items"][0]
        _clear(on)
    meta, spec = found["metadata"], found["spec"]
    del spec["template"]["spec"]["schedulingGates"]
    kept = {key: meta[key] for key in ("name", "namespace", "labels", "annotations")}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": kept, "spec": spec})


def _models(on: Stage, number: int) -> float:
    names = [f"mine-{number}{index:03d}" for index in range(MODELS)]
    file = on.file(f"models-{number}.yaml", [make(name) for name in names for make in (config_map, model)])
    with on.operator() as operator:
        passes, cpu = operator.passes, operator.cpu_seconds
        seconds = _timed(on, file)
        print(f"    {operator.passes - passes} passes, {operator.cpu_seconds - cpu:.1f} s of processor time")
        _clear(on)
    return seconds


def _deployments(on: Stage, number: int, rendered: str) -> float:
    names = [f"bare-{number}{index:03d}" for index in range(MODELS)]
    file = on.file(f"plain-{number}.yaml", [json.loads(rendered.replace(TEMPLATE, name)) for name in names])
    seconds = _timed(on, file)
    _clear(on)
    return seconds


def _timed(on: Stage, file: Path) -> float:
    """Seconds from the start of `kubectl apply` until all pods are bound."""
    pods = on.pods()
    time.sleep(REFILL_S)
    audit = on.audit()
    start = time.monotonic()
    on.kubectl("apply", "-f", str(file))
    applied = time.monotonic() - start
    seconds = pods.wait(MODELS) - start
    print(f"    {file.stem}: {seconds:.1f} s; applied {applied:.1f} s, {pods.story(start)} (half/all)")
    settled("the writes", lambda: audit.work().total())
    _show(audit)
    return seconds


def _show(audit: AuditLog) -> None:
    """Writes of each client for one model."""
    by_client: dict[str, list[str]] = {}
    for write, count in sorted(audit.work().items()):
        by_client.setdefault(write.client, []).append(f"{write.verb} {write.resource} {count / MODELS:.2f}")
    for client, lines in by_client.items():
        print(f"      {client}: {', '.join(lines)}", flush=True)


def _clear(on: Stage) -> None:
    """Takes everything away and waits until it is gone."""
    on.kubectl("delete", "mdep,deployments,configmaps", "--all", "--wait=false")
    wait_until("the namespace to be empty", lambda: not any(map(on.count, LEFTOVERS)), PATIENCE_S)


def _listed(seconds: Sequence[float]) -> str:
    return ", ".join(f"{each:.1f}" for each in seconds)
