"""`bowsprit explain`: one model's status, told in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from bowsprit.cli.screen import table
from bowsprit.cli.tables import nodes_text, stage_table
from bowsprit.plan.fleet import Fleet, Holder
from bowsprit.plan.key import ModelKey
from bowsprit.status.compute import previous_conditions
from bowsprit.status.replicas import RecordedReplica, replicas_from_status
from bowsprit.status.revisions import recorded_failure, recorded_serving, recorded_target
from bowsprit.status.text import count

MOST_HOLDERS = 8
_GOOD = {"Reconciling": "False", "Stalled": "False"}
"""The status that means well; True for every other condition."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model and the cluster that it is in."""

    key: ModelKey
    status: Mapping[str, Any]
    fleet: Fleet
    holders: tuple[Holder, ...]
    """Who holds GPUs: pods, and in a plan on files the other models."""


def explanation_parts(subject: Subject) -> Iterator[RenderableType]:
    status = subject.status
    yield Text.assemble((str(subject.key), "bold"), f": {status.get('phase', 'no status yet')}")
    if "phase" not in status:
        yield "No operator has looked at it. Is one running? See `bowsprit run --help`."
        return
    yield from _facts(status)
    yield ""
    yield _conditions(status)
    recorded = replicas_from_status(status)
    for each in recorded:
        yield ""
        yield from replica_parts(each, recorded_target(status))
    if "waiting" in status:
        yield ""
        yield from _waiting(subject)


def _facts(status: Mapping[str, Any]) -> Iterator[RenderableType]:
    names = {"architecture": "Architecture", "plugins": "Plugins", "url": "URL"}
    for field, name in names.items():
        if status.get(field):
            yield f"{name}: {status[field]}"
    yield f"Replicas: {status.get('readyReplicas', 0)} ready, {status.get('replicas', 0)} exist"
    if (failed := recorded_failure(status)) is not None:
        serving = recorded_serving(status)
        instead = f"revision {serving} serves, or did last" if serving else "no revision has served yet"
        yield f"Revision {failed.revision} failed at {failed.time} ({failed.reason}); {instead}"


def _conditions(status: Mapping[str, Any]) -> RenderableType:
    rows = []
    first_told: dict[str, str] = {}
    for name, each in previous_conditions(status).items():
        said, message = str(each.get("status", "")), str(each.get("message", ""))
        style = "green" if said == _GOOD.get(name, "True") else "yellow"
        first = first_told.setdefault(message, name)
        rows.append(
            (
                name,
                Text(said, style),
                str(each.get("reason", "")),
                message if first == name else f"as {first}",
            )
        )
    return table(("CONDITION", "STATUS", "REASON", "MESSAGE"), rows)


def replica_parts(recorded: RecordedReplica, target: str | None) -> Iterator[RenderableType]:
    """One replica in full: layout, nodes, why, and the GiB of each stage."""
    replica = recorded.replica
    layout = replica.layout
    old = "" if recorded.revision == target else f", older revision {recorded.revision}"
    yield Text(
        f"Replica {replica.index}: {layout} on {count(layout.gpus, 'GPU')} of {layout.product}, "
        f"{count(layout.pods, 'pod')}{old}",
        style="bold",
    )
    yield f"  Nodes: {nodes_text(replica.pods)}"
    if replica.why:
        yield f"  Why: {replica.why}"
    if replica.stages:
        yield Padding(stage_table(replica.stages), (0, 0, 0, 2))


def _waiting(subject: Subject) -> Iterator[RenderableType]:
    waiting = subject.status["waiting"]
    product = waiting.get("product")
    place = f", place {waiting['position']} in the queue" if waiting.get("position") else ""
    kind = f" of {product}" if product else ""
    yield Text(f"Waits for {count(waiting.get('gpusShort', 0), 'GPU')}{kind}{place}.", style="bold")
    holders = [each for each in subject.holders if product in (None, each.product)]
    if holders:
        rows = [(each.who, str(each.gpus), each.product) for each in holders[:MOST_HOLDERS]]
        yield "Who holds them:"
        yield Padding(table(("HOLDER", "GPUS", "GPU TYPE"), rows), (0, 0, 0, 2))
        if len(holders) > MOST_HOLDERS:
            yield f"  and {len(holders) - MOST_HOLDERS} more"
    yield "What would help:"
    for line in _cures(subject, product, holders):
        yield f"  - {line}"


def _cures(subject: Subject, product: str | None, holders: Sequence[Holder]) -> Iterator[str]:
    for left in subject.fleet.left_out:
        if left.gpus > left.held and product in (None, left.product):
            yield f"{count(left.gpus - left.held, 'GPU')} on {left.node} not used: {left.message}"
    if holders:
        yield "fewer replicas of a holder; a higher spec.priority only makes this model the next in line"
    yield "less to hold: spec.capacity.maxModelLen, spec.capacity.concurrency"
    yield f"more nodes with {product or 'GPUs'}"
