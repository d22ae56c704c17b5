"""Putting a model together: its layers, its two ends, and what tensor parallelism must divide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from bowsprit.facts import recurrent
from bowsprit.facts.attention import WINDOW, Mixer, latent, per_head, uses_mla
from bowsprit.facts.context import DTYPE_BYTES, longest_context, positions_bytes, read_dtype
from bowsprit.facts.families import (
    EMBEDDING_ON_EVERY_STAGE,
    ENDS_ON_EVERY_STAGE,
    TIED_UNLESS_SAID,
    UNSTAGEABLE,
)
from bowsprit.facts.fields import Count, Fields
from bowsprit.facts.mlp import Experts, dense, dense_width, missing_experts, read_experts, routed
from bowsprit.facts.model import Divisor, KvCache, KvKind, Layer, ModelFacts
from bowsprit.facts.pattern import Feed, Kind, Mix, layer_kinds
from bowsprit.facts.quantization import Precision, read_precision
from bowsprit.facts.shape import Shape, padded_vocabulary, read_shape
from bowsprit.facts.towers import towers_bytes
from bowsprit.facts.weights import Weight, layer_of

_TEXT_SECTIONS = ("text_config", "thinker_config", "llm_config", "language_config", "decoder")
_SHARED_KV_LAYERS = Count(("num_kv_shared_layers",), 1000, 0)

_STATES: dict[Mix, Callable[[Fields, Shape, int], Mixer]] = {
    Mix.GATED_DELTA: recurrent.gated_delta_net,
    Mix.KIMI_DELTA: recurrent.delta_attention,
    Mix.MAMBA: recurrent.mamba2,
    Mix.CONVOLUTION: recurrent.short_convolution,
}
_NOTHING = Mixer((), KvCache(KvKind.NONE))


def text_part(config: Fields) -> tuple[Fields, Fields]:
    """(the language model's fields, the object that holds the towers)."""
    for name in _TEXT_SECTIONS:
        inner = config.section(name)
        if inner is not None:
            text, beside = text_part(inner)
            return text, config if text is inner else beside
    return config, config


def assemble(config: Fields, digest: str, dtype: str | None = None) -> ModelFacts:
    """`dtype` is vLLM's --dtype; None takes the config's."""
    text, beside = text_part(config)
    shape = read_shape(text)
    served = dtype or read_dtype(text, config)
    precision = read_precision(served, DTYPE_BYTES[served], config.section("quantization_config"))
    experts = read_experts(text, shape)
    kinds = layer_kinds(text, shape, has_experts=experts is not None)
    width = dense_width(text, shape) if any(kind.feed is Feed.DENSE for kind in kinds) else 0
    builder = _Builder(text, shape, precision, experts, width)
    layers = builder.layers(kinds)
    attention = [layer.kv for layer in layers if layer.kv.kv_heads]
    divisors = tuple(builder.divisors(kinds))
    rows = padded_vocabulary(shape.vocabulary)
    tied = _tied(text, config, shape)
    context = longest_context(text, shape.family)
    architecture = _architecture(config)
    return ModelFacts(
        digest=digest,
        architecture=architecture,
        layers=layers,
        embedding_bytes=rows * shape.hidden * precision.dtype_bytes,
        head_bytes=precision.matrix_bytes(precision.head_scheme, shape.hidden, rows),
        tied=tied,
        extra_bytes=towers_bytes(beside, shape, precision.dtype_bytes),
        hidden_size=shape.hidden,
        intermediate_size=max(width, experts.activation if experts else 0),
        heads=shape.heads,
        kv_heads=min((kv.kv_heads for kv in attention), default=1),
        head_dim=shape.head_dim,
        vocab_size=shape.vocabulary,
        experts=experts.count if experts else 0,
        dtype=precision.dtype,
        dtype_bytes=precision.dtype_bytes,
        kv_dtype_bytes=precision.kv_dtype_bytes,
        quantization=precision.quantization,
        max_model_len=context,
        divisors=(*divisors, *builder.expert_divisors()),
        expert_parallel_divisors=divisors,
        embedding_on_every_stage=shape.family in EMBEDDING_ON_EVERY_STAGE,
        head_on_every_stage=shape.family in ENDS_ON_EVERY_STAGE and not tied,
        stageable=architecture not in UNSTAGEABLE,
        rank_bytes=positions_bytes(text, shape, context, precision.dtype_bytes),
    )


def _architecture(config: Fields) -> str:
    named = config.texts("architectures")
    return named[0] if named else config.text("model_type") or "unknown"


def _tied(text: Fields, whole: Fields, shape: Shape) -> bool:
    default = shape.family in TIED_UNLESS_SAID
    return text.flag("tie_word_embeddings", default=whole.flag("tie_word_embeddings", default=default))


class _Builder:
    """What the layers of one model are made of."""

    def __init__(
        self, config: Fields, shape: Shape, precision: Precision, experts: Experts | None, width: int
    ) -> None:
        self._config, self._shape, self._precision = config, shape, precision
        self._experts, self._width = experts, width

    def layers(self, kinds: tuple[Kind, ...]) -> tuple[Layer, ...]:
        own_cache = len(kinds) - (self._config.get(_SHARED_KV_LAYERS) or 0)
        mixers = {mix: self._mixer(mix) for mix in {kind.mix for kind in kinds}}
        feeds = {feed: self._feed(feed) for feed in {kind.feed for kind in kinds}}
        return tuple(
            layer_of(
                index,
                (*mixers[kind.mix].weights, *feeds[kind.feed]),
                mixers[kind.mix].kv if index < own_cache else _NOTHING.kv,
                self._precision,
            )
            for index, kind in enumerate(kinds)
        )

    def _mixer(self, mix: Mix) -> Mixer:
        if mix is Mix.NONE:
            return _NOTHING
        if mix in _STATES:
            return _STATES[mix](self._config, self._shape, self._precision.dtype_bytes)
        if uses_mla(self._config):
            return latent(self._config, self._shape, self._precision.kv_dtype_bytes)
        window = self._config.need(WINDOW) if mix is Mix.SLIDING else 0
        return per_head(self._config, self._shape, window)

    def _feed(self, feed: Feed) -> tuple[Weight, ...]:
        if feed is Feed.NONE:
            return ()
        if feed is Feed.DENSE:
            return dense(self._width, self._shape)
        return routed(self._experts or missing_experts(self._config), self._shape)

    def divisors(self, kinds: tuple[Kind, ...]) -> Iterator[Divisor]:
        """vllm.md section 3, rules 1-4 and 17; KV heads are the planner's, who may repeat them."""
        unit = self._precision.unit
        last = len(kinds) - 1
        slices = unit(f"layers.{last}.self_attn.o_proj")
        outputs = {self._mixer(mix).head_output for mix in {kind.mix for kind in kinds}} - {0}
        heads_a_slice = max((slices // math.gcd(slices, output) for output in outputs), default=1)
        yield Divisor("num_attention_heads", self._shape.heads, heads_a_slice)
        yield Divisor("vocab_size", padded_vocabulary(self._shape.vocabulary))
        if self._width:
            dense_layer = next(i for i, kind in enumerate(kinds) if kind.feed is Feed.DENSE)
            yield Divisor("intermediate_size", self._width, unit(f"layers.{dense_layer}.mlp.down_proj"))
        if self._experts and self._experts.shared_width:
            down = unit(f"layers.{last}.mlp.shared_experts.down_proj")
            yield Divisor("shared expert width", self._experts.shared_width, down)
        if any(kind.mix in _STATES for kind in kinds):
            yield from recurrent.state_divisors(self._config)

    def expert_divisors(self) -> Iterator[Divisor]:
        """Rule 5, which expert parallelism lifts."""
        if self._experts:
            down = self._precision.unit(f"layers.{self._shape.layers - 1}.mlp.experts.0.down_proj")
            yield Divisor("moe_intermediate_size", self._experts.width, down)
