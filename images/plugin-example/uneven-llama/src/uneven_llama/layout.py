"""Where heads, MLP columns and words go when a tensor-parallel size does not divide them: arithmetic only.

vLLM gives each rank as many query heads and as many KV heads as every other, and a rank's query heads share
its KV heads in equal groups. So each rank gets slots: a slot is one KV head and the query heads that read
it, filled up with zero heads. As few slots as possible, because a slot costs KV cache for every token;
where they suffice for several copies of each KV head, its query heads are spread over them. 4 heads and 2
KV heads on 3 ranks are 3 slots of 2 heads, the last one empty.

A zero query head meets zero columns of the output projection, so it adds nothing to the sum of the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

Sources = list[int | None]
"""What stands at each place of a padded axis: an index of the checkpoint's, or None for zeros."""

MLP_ALIGNMENT = 64
"""Columns; matrix kernels are at their best on multiples of it."""
VOCABULARY_ALIGNMENT = 64
"""Words; vLLM pads the vocabulary to a multiple of it before it shards."""


@dataclass(frozen=True, slots=True)
class HeadLayout:
    heads: int
    kv_heads: int
    kv_slots: int
    """KV heads that vLLM is told of, over all ranks."""
    copies: int
    """Slots that hold the same KV head."""
    heads_per_slot: int

    @property
    def padded_heads(self) -> int:
        """Query heads that vLLM is told of, over all ranks."""
        return self.kv_slots * self.heads_per_slot

    @property
    def is_padded(self) -> bool:
        return (self.padded_heads, self.kv_slots) != (self.heads, self.kv_heads)

    def kv_sources(self) -> Sources:
        """The KV head in each slot."""
        filled = self.kv_heads * self.copies
        return [slot // self.copies if slot < filled else None for slot in range(self.kv_slots)]

    def query_sources(self) -> Sources:
        """The query head at each place; a slot's places stand side by side."""
        return [head for slot in range(self.kv_slots) for head in self._heads_of(slot)]

    def _heads_of(self, slot: int) -> Sources:
        kv_head, part = divmod(slot, self.copies)
        if kv_head >= self.kv_heads:
            return [None] * self.heads_per_slot
        group = self.heads // self.kv_heads
        first = part * self.heads_per_slot
        places = range(first, first + self.heads_per_slot)
        return [kv_head * group + place if place < group else None for place in places]


def head_layout(heads: int, kv_heads: int, tp: int) -> HeadLayout:
    """The layout with the fewest KV slots per rank and, among those, the fewest query heads.

    Where vLLM can shard the heads itself nothing changes, its copies of KV heads included.
    """
    if heads % kv_heads:
        raise ValueError(f"{heads} attention heads do not share {kv_heads} KV heads evenly")
    group = heads // kv_heads
    if heads % tp == 0 and (kv_heads % tp == 0 or tp % kv_heads == 0):
        return HeadLayout(heads, kv_heads, kv_heads, copies=1, heads_per_slot=group)
    slots = tp * _ceil(kv_heads, tp)
    copies = slots // kv_heads
    return HeadLayout(heads, kv_heads, slots, copies, heads_per_slot=_ceil(group, copies))


def padded_mlp(columns: int, tp: int) -> int:
    """Intermediate size that `tp` ranks share evenly; the same where it divides already."""
    if columns % tp == 0:
        return columns
    return tp * MLP_ALIGNMENT * _ceil(columns, tp * MLP_ALIGNMENT)


def padded_vocabulary(words: int, tp: int) -> int:
    """Vocabulary whose padded size `tp` ranks share evenly; the same where vLLM's own padding does."""
    if VOCABULARY_ALIGNMENT * _ceil(words, VOCABULARY_ALIGNMENT) % tp == 0:
        return words
    multiple = lcm(VOCABULARY_ALIGNMENT, tp)
    return multiple * _ceil(words, multiple)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)
