"""The safetensors index says how many bytes the checkpoint has; it corrects what the shapes gave.

The shapes know how bytes are shared out over layers, experts, embedding and head, and the index knows the
sum. Within 20% only the layers are scaled, since embedding and head are exact; beyond that the shapes
missed something large and everything is scaled.

Where the headers of the files were read, every layer has the bytes that it has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from bowsprit.facts.fields import Count, Fields
from bowsprit.facts.model import Layer, ModelFacts

_TOTAL = Count(("metadata.total_size",), maximum=10**15)
_CLOSE = Fraction(1, 5)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Bytes of a checkpoint as its files' headers have them, in the dtype in which it is served."""

    layers: tuple[int, ...]
    embedding: int
    head: int
    """0 when it is not there, as it is when tied."""
    other: int
    """Towers, and norms outside of layers."""


def total_size(index: Fields) -> int:
    """Bytes of all tensors on disk."""
    return index.need(_TOTAL)


def corrected(facts: ModelFacts, total: int) -> ModelFacts:
    """The same facts with weight_bytes equal to `total`."""
    beside = facts.weight_bytes - sum(layer.weight_bytes for layer in facts.layers)
    if abs(total - facts.weight_bytes) <= _CLOSE * facts.weight_bytes and total > beside:
        return _exact(facts, total - beside)
    scale = Fraction(total, facts.weight_bytes)
    smaller = replace(
        facts,
        embedding_bytes=int(facts.embedding_bytes * scale),
        head_bytes=int(facts.head_bytes * scale),
        extra_bytes=int(facts.extra_bytes * scale),
    )
    beside = smaller.weight_bytes - sum(layer.weight_bytes for layer in smaller.layers)
    return _exact(smaller, total - beside)


def weighed(facts: ModelFacts, checkpoint: Checkpoint) -> ModelFacts:
    """The same facts with the bytes of the checkpoint, which has as many layers; how tensor parallelism
    splits a layer is still by the shapes."""
    pairs = zip(facts.layers, checkpoint.layers, strict=True)
    return replace(
        facts,
        layers=tuple(_with_bytes(layer, wanted) for layer, wanted in pairs),
        embedding_bytes=checkpoint.embedding or facts.embedding_bytes,
        head_bytes=checkpoint.head or facts.head_bytes,
        extra_bytes=checkpoint.other,
    )


def _with_bytes(layer: Layer, wanted: int) -> Layer:
    """The rounding is the same on every rank."""
    known = layer.weight_bytes
    scaled = _scaled(layer, Fraction(wanted, known)) if known else layer
    return replace(scaled, replicated_bytes=scaled.replicated_bytes + wanted - scaled.weight_bytes)


def _exact(facts: ModelFacts, wanted: int) -> ModelFacts:
    """Layers scaled to `wanted` bytes together; the rounding goes to the first layer."""
    scale = Fraction(wanted, sum(layer.weight_bytes for layer in facts.layers))
    layers = [_scaled(layer, scale) for layer in facts.layers]
    rest = wanted - sum(layer.weight_bytes for layer in layers)
    layers[0] = replace(layers[0], replicated_bytes=layers[0].replicated_bytes + rest)
    return replace(facts, layers=tuple(layers))


def _scaled(layer: Layer, scale: Fraction) -> Layer:
    return replace(
        layer,
        sharded_bytes=int(layer.sharded_bytes * scale),
        kv_projection_bytes=int(layer.kv_projection_bytes * scale),
        expert_bytes=int(layer.expert_bytes * scale),
        replicated_bytes=int(layer.replicated_bytes * scale),
    )
