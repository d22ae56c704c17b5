"""The GPU map: a row a node, a cell a GPU, a letter and a colour a model.

It is drawn from who holds what (pods) and what is planned on top (replica plans), so one picture serves a
live cluster, a plan on files, and the demo.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from bowsprit.api.names import MODEL_LABEL
from bowsprit.cli.screen import table
from bowsprit.cli.tables import fullest, left_out_parts
from bowsprit.inventory.pods import PodView
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ReplicaPlan

FREE, FOREIGN, UNUSABLE = ".", "#", "x"
COLOURS = (
    "cyan",
    "yellow",
    "magenta",
    "green",
    "blue",
    "red",
    "bright_cyan",
    "bright_yellow",
    "bright_magenta",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One node with GPUs."""

    node: str
    product: str
    models: Mapping[ModelKey, int]
    """GPUs by model, as held or planned."""
    foreign: int
    free: int
    unusable: int


@dataclass(frozen=True, slots=True)
class GpuMap:
    rows: tuple[Row, ...]
    fleet: Fleet
    replicas: Mapping[ModelKey, Sequence[ReplicaPlan]]
    """For the legend: layout and GiB, where they are known."""
    idle: Mapping[ModelKey, str]
    """For the legend: why a model has no replicas when it has none."""


def gpu_map(
    fleet: Fleet,
    pods: Iterable[PodView],
    replicas: Mapping[ModelKey, Sequence[ReplicaPlan]],
    idle: Mapping[ModelKey, str],
) -> GpuMap:
    """The GPUs as pods hold them; `replicas` and `idle` are only told in the legend."""
    return GpuMap(_rows(fleet, *_held(pods)), fleet, replicas, idle)


def planned_map(
    fleet: Fleet,
    pods: Iterable[PodView],
    replicas: Mapping[ModelKey, Sequence[ReplicaPlan]],
    idle: Mapping[ModelKey, str],
) -> GpuMap:
    """The GPUs as they will be: what pods hold, and the planned replicas on top."""
    models, foreign = _held(pods)
    for key, plans in replicas.items():
        for pod in (pod for replica in plans for pod in replica.pods):
            models.setdefault(pod.node, Counter())[key] += pod.gpus
    return GpuMap(_rows(fleet, models, foreign), fleet, replicas, idle)


def map_parts(gpus: GpuMap) -> Iterator[RenderableType]:
    """The picture and its legend."""
    keys = sorted({key for row in gpus.rows for key in row.models} | set(gpus.replicas))
    signs = dict(zip(keys, _signs(len(keys)), strict=True))
    colours = {key: COLOURS[index % len(COLOURS)] for index, key in enumerate(keys)}
    if not gpus.rows:
        yield "No node with GPUs."
        return
    yield table(
        ("NODE", "GPUS", "GPU TYPE"),
        [(row.node, _cells(row, signs, colours), row.product) for row in gpus.rows],
    )
    yield ""
    if keys:
        yield table(
            ("", "MODEL", "GPUS", "LAYOUT", "GIB/GPU"),
            [_legend(gpus, key, Text(signs[key], colours[key])) for key in keys],
        )
        yield ""
    yield _sum(gpus)
    yield from left_out_parts(gpus.fleet)


def _held(pods: Iterable[PodView]) -> tuple[dict[str, Counter[ModelKey]], Counter[str]]:
    """(GPUs by node and model, GPUs of other pods by node)."""
    models: dict[str, Counter[ModelKey]] = {}
    foreign: Counter[str] = Counter()
    for pod in pods:
        if not pod.holds:
            continue
        gpus = sum(count for _, count in pod.gpus)
        if name := pod.labels.get(MODEL_LABEL):
            models.setdefault(pod.node, Counter())[ModelKey(pod.namespace, name)] += gpus
        else:
            foreign[pod.node] += gpus
    return models, foreign


def _rows(
    fleet: Fleet, models: Mapping[str, Counter[ModelKey]], foreign: Mapping[str, int]
) -> tuple[Row, ...]:
    sizes = {node.name: (node.product, node.total, 0) for node in fleet.nodes}
    for left in fleet.left_out:
        product, total, unusable = sizes.get(left.node, (left.product or "unknown", 0, 0))
        sizes[left.node] = (product, total, unusable + left.gpus)
    rows = []
    for name in sorted(sizes, key=_natural):
        product, total, unusable = sizes[name]
        own, other = models.get(name, Counter()), foreign.get(name, 0)
        held = own.total() + other
        free = max(0, total - held)
        rows.append(Row(name, product, own, other, free, max(0, total + unusable - held - free)))
    return tuple(rows)


def _cells(row: Row, signs: Mapping[ModelKey, str], colours: Mapping[ModelKey, str]) -> Text:
    cells = Text()
    wide = max((len(sign) for sign in signs.values()), default=1)
    for key in sorted(row.models):
        for _ in range(row.models[key]):
            cells.append(signs[key].ljust(wide) + " ", style=colours[key])
    for sign, count in ((FOREIGN, row.foreign), (FREE, row.free), (UNUSABLE, row.unusable)):
        cells.append((sign.ljust(wide) + " ") * count, style="dim")
    cells.rstrip()
    return cells


def _legend(gpus: GpuMap, key: ModelKey, sign: Text) -> tuple[str | Text, ...]:
    plans = gpus.replicas.get(key, ())
    layouts = Counter(str(replica.layout) for replica in plans)
    told = ", ".join(f"{count} x {layout}" if count > 1 else layout for layout, count in layouts.items())
    held = sum(row.models.get(key, 0) for row in gpus.rows)
    return (
        sign,
        str(key),
        str(held),
        told or gpus.idle.get(key, "-"),
        fullest([s for replica in plans for s in replica.stages]),
    )


def _sum(gpus: GpuMap) -> str:
    ours = sum(sum(row.models.values()) for row in gpus.rows)
    foreign = sum(row.foreign for row in gpus.rows)
    free = sum(row.free for row in gpus.rows)
    unusable = sum(row.unusable for row in gpus.rows)
    parts = [f"{ours + foreign} of {ours + foreign + free + unusable} GPUs used", f"{free} free ({FREE})"]
    if foreign:
        parts.append(f"{foreign} by other pods ({FOREIGN})")
    if unusable:
        parts.append(f"{unusable} not usable ({UNUSABLE})")
    return ", ".join(parts) + "."


def _signs(count: int) -> list[str]:
    """A, B, …; with more models than letters AA, AB, …"""
    letters = string.ascii_uppercase
    wide = 1
    while len(letters) ** wide < count:
        wide += 1
    return [_sign(number, wide) for number in range(count)]


def _sign(number: int, wide: int) -> str:
    letters = string.ascii_uppercase
    return "".join(letters[number // len(letters) ** place % len(letters)] for place in reversed(range(wide)))


def _natural(name: str) -> list[tuple[int, str]]:
    """gpu-2 before gpu-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]
