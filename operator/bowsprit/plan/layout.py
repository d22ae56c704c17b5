"""Candidate layouts of one model on one GPU type, and the bound that each tensor size meets.

For every tensor size that divides, the fewest stages that hold the model: more stages would only cost GPUs.
An explicit field replaces the search along its axis and is checked like any other value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from math import lcm

from bowsprit.facts.model import ModelFacts
from bowsprit.plan import memory
from bowsprit.plan.divide import TENSOR_SIZES, UNEVEN_SIZES, tensor_fault
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
    padded: bool = False
    """The tensor size does not divide the model, whose class pads it."""

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline

    @property
    def pods(self) -> int:
        return self.gpus // self.pod_gpus


class Field(StrEnum):
    """The field of the spec, or the option of the command line, that a bound is about."""

    TENSOR = "spec.parallelism.tensor"
    PIPELINE = "spec.parallelism.pipeline"
    GPUS_PER_POD = "spec.parallelism.gpusPerPod"
    PARTITION = "spec.parallelism.layerPartition"
    PRODUCTS = "spec.accelerator.products"
    UTILIZATION = "spec.capacity.gpuMemoryUtilization"
    TABLE = "--layouts"


@dataclass(frozen=True, slots=True)
class Bound:
    """Why a tensor size gives no layout."""

    tensor: int
    """0 for all of them."""
    field: Field
    text: str
    amount: str = ""
    """What of the sentence depends on the tensor size: it goes between `text` and `rest`."""
    rest: str = ""
    pod_gpus: int = 0
    """GPUs of a node that would do, where none has as many."""

    @property
    def words(self) -> str:
        if not self.amount:
            return self.text
        return f"with tensor {self.tensor} {self.text} {self.amount}{self.rest}"


@dataclass(frozen=True, slots=True)
class Candidates:
    cuts: tuple[Cut, ...]
    bounds: tuple[Bound, ...]


@lru_cache(maxsize=16384)
def candidates(shape: Shape, demand: Demand, explicit: ExplicitLayout, memory_mib: int) -> Candidates:
    """All layouts by the memory model, by ascending tensor size."""
    search = _Search(shape.facts, demand, explicit, memory_mib)
    sizes = _tensors(explicit, UNEVEN_SIZES if demand.uneven_tensor else TENSOR_SIZES)
    return _sorted_out([_in_stages(shape.facts, search.cut(tensor)) for tensor in sizes])


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
    return _sorted_out([_in_stages(facts, result) for result in results])


@lru_cache(maxsize=16384)
def partition(shape: Shape, demand: Demand, tensor: int, pipeline: int) -> tuple[int, ...]:
    """The most even split in stages."""
    return balanced(memory.costs(shape.facts, demand, tensor, pipeline), pipeline)


@lru_cache(maxsize=16384)
def stage_budget(
    shape: Shape, demand: Demand, tensor: int, layers: tuple[int, ...], memory_mib: int
) -> tuple[Stage, ...]:
    return memory.stages(shape.facts, demand, tensor, layers, memory_mib)


def _tensors(explicit: ExplicitLayout, sizes: Sequence[int]) -> Sequence[int]:
    if explicit.tensor is not None:
        return (explicit.tensor,)
    if explicit.gpus_per_pod is not None:
        return [size for size in sizes if explicit.gpus_per_pod % size == 0]
    return sizes


def _in_stages(facts: ModelFacts | None, result: Cut | Bound) -> Cut | Bound:
    """The cut, or why the model cannot have its stages."""
    if facts is None or facts.stageable or isinstance(result, Bound) or result.pipeline == 1:
        return result
    why = f", and vLLM cannot split {facts.architecture} (it lacks SupportsPP)"
    return Bound(result.tensor, Field.TENSOR, "the model needs", f"{result.pipeline} stages", why)


def _sorted_out(results: Sequence[Cut | Bound]) -> Candidates:
    return Candidates(
        cuts=tuple(result for result in results if isinstance(result, Cut)),
        bounds=tuple(result for result in results if isinstance(result, Bound)),
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """The layouts of one model on GPUs of one size."""

    facts: ModelFacts
    demand: Demand
    explicit: ExplicitLayout
    memory_mib: int

    @property
    def room(self) -> float:
        return memory.capacity(self.memory_mib, self.demand)

    def cut(self, tensor: int) -> Cut | Bound:
        """The layout with this tensor size, or the first bound that it meets."""
        fault = tensor_fault(self.facts, tensor, self.demand.expert_parallel)
        if fault and not self.demand.uneven_tensor:
            return Bound(tensor, Field.TENSOR, fault)
        if bound := explicit_bound(self.explicit, tensor, len(self.facts.layers)):
            return bound
        asked = self.explicit.stages
        cut = self._least(tensor) if asked is None else self._asked(tensor, asked)
        if isinstance(cut, Cut) and not memory.context_fits(self.memory_mib, self.demand, cut.gpus):
            outside = self.memory_mib * (1 - self.demand.utilization) / 1024
            text = (
                f"{self.demand.utilization:g} leaves {outside:.2f} GiB of a GPU for the CUDA context and NCCL"
            )
            return Bound(tensor, Field.UTILIZATION, f"{text}, which need 1")
        return replace(cut, padded=True) if fault and isinstance(cut, Cut) else cut

    def _least(self, tensor: int) -> Cut | Bound:
        """As few stages as fit, in whole pods."""
        layers = len(self.facts.layers)
        least = self.least_pipeline(tensor)
        if least is None:
            cost = memory.costs(self.facts, self.demand, tensor, layers)
            one_layer = f"{fullest(cost, (1,) * layers) / GIB:.1f} GiB"
            return Bound(tensor, Field.TENSOR, "even a stage of one layer needs", one_layer, self._room_words)
        cut = _whole_pods(self.explicit, tensor, least)
        if cut.pipeline > layers:
            text = f"pods of {cut.pod_gpus} GPUs need {cut.pipeline} stages, more than the {layers} layers"
            return Bound(tensor, Field.GPUS_PER_POD, text)
        return cut

    def least_pipeline(self, tensor: int) -> int | None:
        """The fewest stages that fit; costs grow with the stages (tokens in flight), hence the loop."""
        pipeline = 1
        while True:
            need = fewest_stages(memory.costs(self.facts, self.demand, tensor, pipeline), self.room)
            if need is None or need <= pipeline:
                return None if need is None else pipeline
            pipeline = need

    def _asked(self, tensor: int, pipeline: int) -> Cut | Bound:
        """The user's own number of stages or layer partition, when it fits in memory."""
        cost = memory.costs(self.facts, self.demand, tensor, pipeline)
        split = self.explicit.layer_partition
        even = balanced(cost, pipeline)
        full = fullest(cost, split or even)
        if full <= self.room:
            return Cut(tensor, pipeline, self.explicit.gpus_per_pod or tensor)
        text = f"with tensor {tensor} and pipeline {pipeline} the fullest stage needs {full / GIB:.1f} GiB"
        text += self._room_words
        if split and fullest(cost, even) <= self.room:
            text += f"; the even split {','.join(map(str, even))} fits"
        elif least := self.least_pipeline(tensor):
            text += f"; pipeline {least} fits"
        return Bound(tensor, Field.PARTITION if split else Field.PIPELINE, text)

    @property
    def _room_words(self) -> str:
        return f" of a GPU, and {self.room / GIB:.1f} GiB may be used"


def explicit_bound(explicit: ExplicitLayout, tensor: int, layers: int | None) -> Bound | None:
    """What is wrong with the explicit fields among themselves, and with the number of layers where it is
    known."""
    asked, pod = explicit.stages, explicit.gpus_per_pod
    if pod is not None and pod % tensor:
        text = f"{pod} is not a multiple of tensor {tensor}; use {lcm(pod, tensor)}"
        return Bound(tensor, Field.GPUS_PER_POD, text)
    if asked is None:
        return None
    if layers is not None and asked > layers:
        text = f"{asked} stages are more than the {layers} layers; use at most {layers}"
        return Bound(tensor, Field.PIPELINE, text)
    if fault := _partition_fault(explicit, layers):
        return Bound(tensor, Field.PARTITION, fault)
    if pod is not None and tensor * asked % pod:
        text = f"pods of {pod} do not divide the {tensor * asked} GPUs of tensor {tensor} x pipeline {asked}"
        return Bound(tensor, Field.GPUS_PER_POD, f"{text}; use {tensor}")
    return None


def _partition_fault(explicit: ExplicitLayout, layers: int | None) -> str | None:
    split = explicit.layer_partition
    if not split:
        return None
    if len(split) != explicit.stages:
        return f"it names {len(split)} stages and pipeline is {explicit.stages}"
    if min(split) < 1:
        return "a stage holds no layer, and every stage needs one"
    if layers is not None and sum(split) != layers:
        return f"its {len(split)} stages hold {sum(split)} layers; the model has {layers}"
    return None


def _whole_pods(explicit: ExplicitLayout, tensor: int, least: int) -> Cut:
    """`least` stages, rounded up to fill pods of the user's size."""
    pod = explicit.gpus_per_pod or tensor
    stages_per_pod = pod // tensor
    return Cut(tensor, -(-least // stages_per_pod) * stages_per_pod, pod)


def _measured_cut(
    fewest: int | None, facts: ModelFacts | None, explicit: ExplicitLayout, tensor: int
) -> Cut | Bound:
    layers = len(facts.layers) if facts else None
    if bound := explicit_bound(explicit, tensor, layers):
        return bound
    asked = explicit.stages
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
