"""The tensors of one layer, as shapes with names, and their bytes once the precision is known.

Every block (attention, MLP, experts, mamba) says what it is made of as a list of `Weight`; only here do
shapes become the bytes of a Layer. Biases are left out: in no family do they reach 0.2% of the weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from bowsprit.facts.model import KvCache, Layer
from bowsprit.facts.quantization import Precision


class Split(Enum):
    """How tensor parallelism divides a weight; the fields of Layer."""

    SHARDED = auto()
    KV = auto()
    EXPERT = auto()
    REPLICATED = auto()


@dataclass(frozen=True, slots=True)
class Weight:
    """`count` matrices of one shape; `name` is the path in the layer, as quantization lists say it."""

    name: str
    inputs: int
    outputs: int
    split: Split = Split.SHARDED
    count: int = 1
    quantizable: bool = True
    """False for what vLLM always keeps in the activation dtype (norms, routers, convolutions)."""


def norm(name: str, size: int) -> Weight:
    return Weight(name, 1, size, Split.REPLICATED, quantizable=False)


def layer_of(index: int, weights: Iterable[Weight], kv: KvCache, precision: Precision) -> Layer:
    """Bytes of layer `index`, by split."""
    totals = dict.fromkeys(Split, 0)
    adapter_values = 0
    for weight in weights:
        name = f"layers.{index}.{weight.name}"
        scheme = precision.scheme(name) if weight.quantizable else None
        if weight.quantizable:
            adapter_values += weight.count * (weight.inputs + weight.outputs)
        totals[weight.split] += weight.count * precision.matrix_bytes(scheme, weight.inputs, weight.outputs)
    return Layer(
        sharded_bytes=totals[Split.SHARDED],
        kv_projection_bytes=totals[Split.KV],
        expert_bytes=totals[Split.EXPERT],
        replicated_bytes=totals[Split.REPLICATED],
        kv=kv,
        adapter_values=adapter_values,
    )
