"""Splitting the layers into pipeline stages: the fewest stages that fit, and the split that is most even.

Stages are runs of consecutive layers and none is empty (vLLM accepts an empty stage and then serves from
fewer GPUs than it holds). The first stage also has the embedding, the last one the output head.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from heapq import heapify, heapreplace

from bowsprit.plan.memory import Costs


def fewest_stages(costs: Costs, capacity: float) -> int | None:
    """The least number of stages of which each is within `capacity` bytes; None when no split is."""
    count = len(costs.layers)
    cumulative = costs.cumulative()
    if count == 0:
        return None
    if costs.stage(0, count, cumulative) <= capacity:
        return 1
    last_start = _last_stage_start(costs, cumulative, capacity)
    stages, start = 0, 0
    while start < count:
        if stages > 0 and start >= last_start:
            return stages + 1
        end = _reach(costs, cumulative, start, capacity)
        if end == start:
            return None
        start = end
        stages += 1
    return None


def _last_stage_start(costs: Costs, cumulative: Sequence[float], capacity: float) -> int:
    """The first layer from which on all the rest, with the head, is one stage."""
    room = capacity - costs.everywhere - costs.last
    count = len(costs.layers)
    start = count
    while start > 0 and cumulative[count] - cumulative[start - 1] <= room:
        start -= 1
    return start


def _reach(costs: Costs, cumulative: Sequence[float], start: int, capacity: float) -> int:
    """One past the last layer that a stage (never the last one) from `start` on can hold."""
    room = capacity - costs.everywhere - (costs.first if start == 0 else 0.0)
    end = bisect_right(cumulative, cumulative[start] + room) - 1
    return max(start, min(end, len(costs.layers) - 1))


def fullest(costs: Costs, partition: Sequence[int]) -> float:
    """Bytes of the fullest stage."""
    cumulative = costs.cumulative()
    ends = [sum(partition[: index + 1]) for index in range(len(partition))]
    return max(costs.stage(end - count, end, cumulative) for count, end in zip(partition, ends, strict=True))


def balanced(costs: Costs, stages: int) -> tuple[int, ...]:
    """Layers per stage with the least fullest stage; among those, the most even (least sum of squares).

    `stages` is at most the number of layers.
    """
    if stages == 1:
        return (len(costs.layers),)
    if len(set(costs.layers)) == 1:
        return _even(costs, stages)
    cumulative = costs.cumulative()
    count = len(costs.layers)
    limit = _least_limit(costs, stages)
    # best[end] = (sum of squares, start of the last stage) over splits of layers[:end] into k stages.
    best: list[tuple[float, int] | None] = [None] * (count + 1)
    best[0] = (0.0, 0)
    steps: list[list[tuple[float, int] | None]] = []
    for stage in range(1, stages + 1):
        row: list[tuple[float, int] | None] = [None] * (count + 1)
        ends = (count,) if stage == stages else range(stage, count - (stages - stage) + 1)
        for end in ends:
            row[end] = _best_start(costs, cumulative, best, end, limit)
        steps.append(row)
        best = row
    partition: list[int] = []
    end = count
    for row in reversed(steps):
        entry = row[end]
        assert entry is not None, "the limit was found with a split that keeps it"
        partition.append(end - entry[1])
        end = entry[1]
    return tuple(reversed(partition))


def _even(costs: Costs, stages: int) -> tuple[int, ...]:
    """Equal layers, one after the other to the stage that is the least full: exact, as all weigh the same."""
    layer = costs.layers[0]
    ends = {0: costs.first, stages - 1: costs.last}
    partition = [1] * stages
    least = [(ends.get(stage, 0.0) + layer, stage) for stage in range(stages)]
    heapify(least)
    for _ in range(len(costs.layers) - stages):
        size, stage = least[0]
        partition[stage] += 1
        heapreplace(least, (size + layer, stage))
    return tuple(partition)


def _best_start(
    costs: Costs,
    cumulative: Sequence[float],
    best: Sequence[tuple[float, int] | None],
    end: int,
    limit: float,
) -> tuple[float, int] | None:
    """The start of the last stage that makes a split of layers[:end] most even; ties put more layers late."""
    answer: tuple[float, int] | None = None
    for start in range(end - 1, -1, -1):
        size = costs.stage(start, end, cumulative)
        if size > limit:
            break
        before = best[start]
        if before is not None and (answer is None or before[0] + size * size < answer[0]):
            answer = (before[0] + size * size, start)
    return answer


def _least_limit(costs: Costs, stages: int) -> float:
    """The least capacity at which `stages` stages suffice, a hair above the exact value."""
    low, high = 0.0, costs.everywhere + costs.first + costs.last + costs.last_alone + sum(costs.layers)
    for _ in range(60):
        middle = (low + high) / 2
        need = fewest_stages(costs, middle)
        if need is not None and need <= stages:
            high = middle
        else:
            low = middle
    return high * (1 + 1e-9)
