"""A Llama checkpoint, padded for one tensor-parallel size: its config, and its weights as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from uneven_llama.layout import HeadLayout, Sources, head_layout, padded_mlp, padded_vocabulary

if TYPE_CHECKING:
    from transformers import LlamaConfig

Weight = tuple[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Padding:
    heads: HeadLayout
    head_size: int
    mlp: int
    """Intermediate size with padding."""
    vocabulary: int
    """Words with padding."""
    is_needed: bool

    @classmethod
    def of(cls, config: LlamaConfig, tp: int) -> Padding:
        """What `tp` ranks need; `config` is the checkpoint's own and stays as it is."""
        heads = head_layout(config.num_attention_heads, config.num_key_value_heads, tp)
        mlp = padded_mlp(config.intermediate_size, tp)
        vocabulary = padded_vocabulary(config.vocab_size, tp)
        return cls(
            heads=heads,
            head_size=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
            mlp=mlp,
            vocabulary=vocabulary,
            is_needed=heads.is_padded or (mlp, vocabulary) != (config.intermediate_size, config.vocab_size),
        )

    def config(self, config: LlamaConfig) -> LlamaConfig:
        """A copy of `config` with the padded sizes, for the class to be built from."""
        padded = deepcopy(config)
        padded.head_dim = self.head_size  # no longer what hidden_size and the number of heads say
        padded.num_attention_heads = self.heads.padded_heads
        padded.num_key_value_heads = self.heads.kv_slots
        padded.intermediate_size = self.mlp
        padded.vocab_size = self.vocabulary
        return padded

    def weights(self, weights: Iterable[Weight]) -> Iterator[Weight]:
        """The checkpoint's tensors, one at a time, in the padded shapes."""
        if not self.is_needed:
            yield from weights
            return
        queries = partial(spread, sources=self.heads.query_sources(), width=self.head_size)
        kv = partial(spread, sources=self.heads.kv_sources(), width=self.head_size)
        mlp = partial(extend, length=self.mlp)
        words = partial(extend, length=self.vocabulary)
        rows = {
            "q_proj": queries,
            "k_proj": kv,
            "v_proj": kv,
            "gate_proj": mlp,
            "up_proj": mlp,
            "embed_tokens": words,
            "lm_head": words,
        }
        columns = {"o_proj": queries, "down_proj": mlp}  # their biases belong to no rank and stay as they are
        for name, tensor in weights:
            module = name.split(".")[-2]
            if module in rows:
                yield name, rows[module](tensor, axis=0)
            elif module in columns and name.endswith(".weight"):
                yield name, columns[module](tensor, axis=1)
            else:
                yield name, tensor


def spread(tensor: torch.Tensor, sources: Sources, width: int, axis: int) -> torch.Tensor:
    """Blocks of `width` along `axis` in the order of `sources`, with zeros where there is no source."""
    blocks = tensor.unflatten(axis, (-1, width))
    zero = torch.zeros_like(blocks.narrow(axis, 0, 1))
    count = blocks.shape[axis]
    order = torch.tensor([count if source is None else source for source in sources], device=tensor.device)
    return torch.cat([blocks, zero], axis).index_select(axis, order).flatten(axis, axis + 1)


def extend(tensor: torch.Tensor, length: int, axis: int) -> torch.Tensor:
    """Zeros at the end of `axis` up to `length`."""
    missing = list(tensor.shape)
    missing[axis] = length - missing[axis]
    return torch.cat([tensor, tensor.new_zeros(missing)], axis)
