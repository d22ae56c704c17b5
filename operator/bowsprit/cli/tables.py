"""The tables of `plan` and `explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bowsprit.cli.contract import gpu_totals
from bowsprit.cli.planning import Answer, ModelAnswer
from bowsprit.cli.screen import table
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.result import PodPlan, ReplicaPlan, Stage

MOST_LEFT_OUT = 10


def plan_tables(answer: Answer) -> Iterator[RenderableType]:
    """A line for each replica, then what is not placed and why, then the sum."""
    rows = [
        _replica_row(model, replica)
        for model in answer.models
        if model.plan
        for replica in model.plan.replicas
    ]
    if rows:
        yield table(("MODEL", "REPLICA", "LAYOUT", "GPUS", "GPU TYPE", "GIB/GPU", "NODES"), rows)
        yield ""
    for model in answer.models:
        if not model.placed:
            yield Text(f"{model.key}: {model.verdict.reason}: {model.verdict.message}", style="red")
            yield ""
    gpus = gpu_totals(answer)
    yield f"{gpus['used']} of {gpus['total']} GPUs used, {gpus['free']} free."
    if not answer.placed:
        yield from left_out_parts(answer.fleet)


def left_out_parts(fleet: Fleet) -> Iterator[RenderableType]:
    """The nodes that are not used, or not wholly, and why; the first of them when there are many."""
    if not fleet.left_out:
        return
    rows = [(left.node, str(left.gpus), left.message) for left in fleet.left_out[:MOST_LEFT_OUT]]
    yield ""
    yield table(("NOT USED ON", "GPUS", "BECAUSE"), rows)
    if len(fleet.left_out) > MOST_LEFT_OUT:
        yield f"and on {len(fleet.left_out) - MOST_LEFT_OUT} more"


def stage_table(stages: Sequence[Stage]) -> Table:
    """GiB of one GPU of each pipeline stage; equal neighbours share a line."""
    rows = []
    start = 0
    for number, stage in enumerate(stages):
        if number + 1 < len(stages) and stages[number + 1] == stage:
            continue
        name = str(start) if start == number else f"{start}-{number}"
        used = stage.weights_gib + stage.kv_gib + stage.other_gib
        parts = (stage.weights_gib, stage.kv_gib, stage.other_gib, used, stage.capacity_gib)
        rows.append((name, str(stage.layers), *(f"{gib:.1f}" for gib in parts)))
        start = number + 1
    return table(("STAGE", "LAYERS", "WEIGHTS GIB", "KV GIB", "OTHER GIB", "SUM", "OF"), rows)


def nodes_text(pods: Sequence[PodPlan]) -> str:
    """`gpu-1 (4 GPUs), gpu-2 (1 GPU)`; pods without a node are the scheduler's to place."""
    if not any(pod.node for pod in pods):
        return "where the scheduler puts them"
    gpus: Counter[str] = Counter()
    for pod in pods:
        gpus[pod.node] += pod.gpus
    return ", ".join(f"{node} ({count} GPU{'s' if count > 1 else ''})" for node, count in gpus.items())


def fullest(stages: Sequence[Stage]) -> str:
    """Of the stage with the least room: `71.2 of 73.3`; `-` when the GiB are not known."""
    if not stages:
        return "-"
    stage = min(stages, key=lambda each: each.capacity_gib - each.weights_gib - each.kv_gib - each.other_gib)
    return f"{stage.weights_gib + stage.kv_gib + stage.other_gib:.1f} of {stage.capacity_gib:.1f}"


def _replica_row(model: ModelAnswer, replica: ReplicaPlan) -> tuple[str, ...]:
    layout = replica.layout
    return (
        str(model.key),
        str(replica.index),
        str(layout),
        str(layout.gpus),
        layout.product,
        fullest(replica.stages),
        nodes_text(replica.pods),
    )
