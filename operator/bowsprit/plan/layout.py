"""Candidate layouts of one model on one GPU type, and the bound that each tensor size meets.

For every tensor size that divides, the fewest stages that hold the model: more stages would only cost GPUs.
An explicit field replaces the search along its axis and is checked like any other value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from math import lcm

from bowsprit.facts.model import ModelFacts
from bowsprit.plan import memory
from bowsprit.plan.divide import TENSOR_SIZES, tensor_fault
from bowsprit.plan.memory import GIB
from bowsprit.plan.partition import balanced, fewest_stages, fullest
from bowsprit.plan.result import Stage
from bowsprit.plan.wish import Demand, ExplicitLayout, MeasuredLayout


@dataclass(frozen=True, slots=True)
class Shape:
    """Facts under their digest: equal digests are equal facts, and hashing them is cheap."""

    digest: str
    facts: ModelFacts = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cut:
    """One way to cut a replica, before it is known where its pods go."""

    tensor: int
    pipeline: int
    pod_gpus: int
    """GPUs that must lie together on a node: `tensor`, or the user's own gpusPerPod."""

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline

    @property
    def pods(self) -> int:
        return self.gpus // self.pod_gpus


class Field(StrEnum):
    """The field of the spec that a bound is about."""

    TENSOR = "parallelism.tensor"
    PIPELINE = "parallelism.pipeline"
    GPUS_PER_POD = "parallelism.gpusPerPod"
    PARTITION = "parallelism.layerPartition"
    UTILIZATION = "capacity.gpuMemoryUtilization"
    TABLE = "layouts"


@dataclass(frozen=True, slots=True)
class Bound:
    """Why a tensor size gives no layout."""

    tensor: int
    field: Field
    text: str


@dataclass(frozen=True, slots=True)
class Candidates:
    cuts: tuple[Cut, ...]
    bounds: tuple[Bound, ...]


@lru_cache(maxsize=16384)
def candidates(shape: Shape, demand: Demand, explicit: ExplicitLayout, memory_mib: int) -> Candidates:
    """All layouts by the memory model, by ascending tensor size."""
    results = [_cut(shape.facts, demand, explicit, tensor, memory_mib) for tensor in _tensors(explicit)]
    return _sorted_out(results)


def measured_candidates(
    table: Sequence[MeasuredLayout], facts: ModelFacts | None, explicit: ExplicitLayout
) -> Candidates:
    """All layouts by the user's own table; a tensor size that it lacks is taken as the user's word only when
    the number of stages is explicit too."""
    fewest = {
        row.tensor: row.min_pipeline for row in sorted(table, key=lambda r: (r.tensor, -r.min_pipeline))
    }
    tensors = [explicit.tensor] if explicit.tensor else sorted(fewest)
    results = [_measured_cut(fewest.get(tensor), facts, explicit, tensor) for tensor in tensors]
    return _sorted_out(results)


@lru_cache(maxsize=16384)
def partition(shape: Shape, demand: Demand, tensor: int, pipeline: int) -> tuple[int, ...]:
    """The most even split in stages."""
    return balanced(memory.costs(shape.facts, demand, tensor, pipeline), pipeline)


@lru_cache(maxsize=16384)
def stage_budget(
    shape: Shape, demand: Demand, tensor: int, layers: tuple[int, ...], memory_mib: int
) -> tuple[Stage, ...]:
    return memory.stages(shape.facts, demand, tensor, layers, memory_mib)


def _tensors(explicit: ExplicitLayout) -> Sequence[int]:
    if explicit.tensor is not None:
        return (explicit.tensor,)
    if explicit.gpus_per_pod is not None:
        return [size for size in TENSOR_SIZES if explicit.gpus_per_pod % size == 0]
    return TENSOR_SIZES


def _sorted_out(results: Sequence[Cut | Bound]) -> Candidates:
    return Candidates(
        cuts=tuple(result for result in results if isinstance(result, Cut)),
        bounds=tuple(result for result in results if isinstance(result, Bound)),
    )


def _cut(
    facts: ModelFacts, demand: Demand, explicit: ExplicitLayout, tensor: int, memory_mib: int
) -> Cut | Bound:
    if fault := tensor_fault(facts, tensor, demand.expert_parallel):
        return Bound(tensor, Field.TENSOR, fault)
    asked = _asked_pipeline(explicit, tensor, len(facts.layers))
    if isinstance(asked, Bound):
        return asked
    least = least_pipeline(facts, demand, tensor, memory_mib)
    if least is None:
        return Bound(tensor, Field.TENSOR, _no_stage_text(facts, demand, tensor, memory_mib))
    if asked is None:
        cut = _whole_pods(explicit, tensor, least)
        if cut.pipeline > len(facts.layers):
            text = f"pods of {cut.pod_gpus} GPUs need {cut.pipeline} stages, more than the {len(facts.layers)} layers"
            return Bound(tensor, Field.GPUS_PER_POD, text)
    else:
        if fault := _pipeline_fault(facts, demand, explicit, tensor, asked, memory_mib):
            return Bound(tensor, Field.PARTITION if explicit.layer_partition else Field.PIPELINE, fault)
        cut = Cut(tensor, asked, explicit.gpus_per_pod or tensor)
    if not memory.context_fits(memory_mib, demand, cut.gpus):
        outside = memory_mib * (1 - demand.utilization) / 1024
        text = f"{demand.utilization:g} leaves {outside:.2f} GiB of a GPU for the CUDA context and NCCL, which need 1"
        return Bound(tensor, Field.UTILIZATION, text)
    return cut


def least_pipeline(facts: ModelFacts, demand: Demand, tensor: int, memory_mib: int) -> int | None:
    """The fewest stages that fit; costs grow with the stages (tokens in flight), hence the loop."""
    room = memory.capacity(memory_mib, demand)
    pipeline = 1
    while True:
        need = fewest_stages(memory.costs(facts, demand, tensor, pipeline), room)
        if need is None or need <= pipeline:
            return None if need is None else pipeline
        pipeline = need


def _asked_pipeline(explicit: ExplicitLayout, tensor: int, layers: int | None) -> int | None | Bound:
    """The user's number of stages, if any, checked against the layers and the pods."""
    split = explicit.layer_partition
    asked = explicit.pipeline or (len(split) if split else None)
    pod = explicit.gpus_per_pod
    if pod is not None and pod % tensor:
        return Bound(
            tensor, Field.GPUS_PER_POD, f"{pod} is not a multiple of tensor {tensor}; use {lcm(pod, tensor)}"
        )
    if asked is None:
        return None
    if layers is not None and asked > layers:
        return Bound(
            tensor, Field.PIPELINE, f"{asked} stages are more than the {layers} layers; use at most {layers}"
        )
    if split and len(split) != asked:
        return Bound(tensor, Field.PARTITION, f"it names {len(split)} stages and pipeline is {asked}")
    if split and layers is not None and (sum(split) != layers or min(split) < 1):
        text = f"its {len(split)} stages hold {sum(split)} layers, at least {min(split)} each; the model has {layers}"
        return Bound(tensor, Field.PARTITION, f"{text}, and every stage needs one")
    if pod is not None and tensor * asked % pod:
        text = f"pods of {pod} do not divide the {tensor * asked} GPUs of tensor {tensor} x pipeline {asked}"
        return Bound(tensor, Field.GPUS_PER_POD, f"{text}; use {tensor}")
    return asked


def _whole_pods(explicit: ExplicitLayout, tensor: int, least: int) -> Cut:
    """`least` stages, rounded up to fill pods of the user's size."""
    pod = explicit.gpus_per_pod or tensor
    stages_per_pod = pod // tensor
    return Cut(tensor, -(-least // stages_per_pod) * stages_per_pod, pod)


def _pipeline_fault(
    facts: ModelFacts, demand: Demand, explicit: ExplicitLayout, tensor: int, pipeline: int, memory_mib: int
) -> str | None:
    """Why an explicit number of stages or partition does not fit in memory, with the nearest that does."""
    room = memory.capacity(memory_mib, demand)
    cost = memory.costs(facts, demand, tensor, pipeline)
    split = explicit.layer_partition
    if not split:
        need = fewest_stages(cost, room)
        if need is not None and need <= pipeline:
            return None
    full = fullest(cost, split or balanced(cost, pipeline))
    if full <= room:
        return None
    text = (
        f"with tensor {tensor} and pipeline {pipeline} the fullest stage needs {full / GIB:.1f} GiB of a GPU, "
        f"and {room / GIB:.1f} GiB may be used"
    )
    least = least_pipeline(facts, demand, tensor, memory_mib)
    if split and least is not None and least <= pipeline:
        even = ",".join(str(count) for count in balanced(cost, pipeline))
        return f"{text}; the even split {even} fits"
    return f"{text}; pipeline {least} fits" if least else text


def _no_stage_text(facts: ModelFacts, demand: Demand, tensor: int, memory_mib: int) -> str:
    room = memory.capacity(memory_mib, demand)
    count = len(facts.layers)
    cost = memory.costs(facts, demand, tensor, count)
    full = fullest(cost, (1,) * count)
    return (
        f"with tensor {tensor} even a stage of one layer needs {full / GIB:.1f} GiB of a GPU, "
        f"and {room / GIB:.1f} GiB may be used"
    )


def _measured_cut(
    fewest: int | None, facts: ModelFacts | None, explicit: ExplicitLayout, tensor: int
) -> Cut | Bound:
    layers = len(facts.layers) if facts else None
    asked = _asked_pipeline(explicit, tensor, layers)
    if isinstance(asked, Bound):
        return asked
    if asked is not None:
        if fewest is not None and asked < fewest:
            text = f"the table says that tensor {tensor} needs {fewest} stages; {asked} are too few"
            return Bound(tensor, Field.PIPELINE, text)
        return Cut(tensor, asked, explicit.gpus_per_pod or tensor)
    if fewest is None:
        return Bound(tensor, Field.TABLE, f"the table has no row with tensor {tensor}")
    cut = _whole_pods(explicit, tensor, fewest)
    if layers is not None and cut.pipeline > layers:
        return Bound(tensor, Field.TABLE, f"{cut.pipeline} stages are more than the {layers} layers")
    return cut
