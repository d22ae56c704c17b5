"""Each query head finds its KV head on its own rank, whatever the numbers; what divides stays as it is.

vLLM's sharding is written down here once more, as its QKVParallelLinear does it: the layouts are judged by
what each rank then computes.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uneven_llama.layout import HeadLayout, head_layout, padded_mlp, padded_vocabulary


class Rank(NamedTuple):
    queries: list[int | None]
    kv: list[int | None]

    def pairs(self) -> list[tuple[int | None, int | None]]:
        """Each query head with the KV head that it attends to on this rank."""
        readers = len(self.queries) // len(self.kv)
        return [(query, self.kv[place // readers]) for place, query in enumerate(self.queries)]


def ranks_of(layout: HeadLayout, tp: int) -> list[Rank]:
    """What vLLM gives to each rank, with its own copies where there are fewer KV heads than ranks."""
    queries, kv = layout.query_sources(), layout.kv_sources()
    assert len(queries) % tp == 0, "vLLM refuses at configuration time"
    assert len(kv) % tp == 0 or tp % len(kv) == 0, "vLLM's Llama asserts this"
    mine = len(queries) // tp
    slots = max(1, len(kv) // tp)
    copies = max(1, tp // len(kv))
    return [
        Rank(
            queries[rank * mine : (rank + 1) * mine],
            kv[rank // copies * slots : (rank // copies + 1) * slots],
        )
        for rank in range(tp)
    ]


@st.composite
def models(draw: st.DrawFn) -> tuple[int, int]:
    kv_heads = draw(st.integers(1, 48))
    return kv_heads * draw(st.integers(1, 24)), kv_heads


tensor_sizes = st.integers(1, 64)
untimed = settings(deadline=None)


@untimed
@given(models(), tensor_sizes)
def test_each_query_head_is_computed_once_and_beside_its_own_kv_head(model: tuple[int, int], tp: int) -> None:
    heads, kv_heads = model
    pairs = [pair for rank in ranks_of(head_layout(heads, kv_heads, tp), tp) for pair in rank.pairs()]
    real = [(query, kv) for query, kv in pairs if query is not None]
    assert real == [(head, head // (heads // kv_heads)) for head in range(heads)]


@untimed
@given(models(), tensor_sizes)
def test_no_rank_holds_more_kv_heads_than_it_must(model: tuple[int, int], tp: int) -> None:
    heads, kv_heads = model
    assert {len(rank.kv) for rank in ranks_of(head_layout(heads, kv_heads, tp), tp)} == {ceil(kv_heads / tp)}


@untimed
@given(models(), tensor_sizes)
def test_no_layout_of_equal_slots_needs_fewer_query_heads(model: tuple[int, int], tp: int) -> None:
    heads, kv_heads = model
    slots = tp * ceil(kv_heads / tp)
    group = heads // kv_heads
    enough = [places for places in range(1, group + 1) if kv_heads * ceil(group / places) <= slots]
    assert head_layout(heads, kv_heads, tp).padded_heads <= slots * min(enough)


@untimed
@given(models(), tensor_sizes)
def test_what_vllm_can_shard_itself_is_left_alone(model: tuple[int, int], tp: int) -> None:
    heads, kv_heads = model
    layout = head_layout(heads, kv_heads, tp)
    divides = heads % tp == 0 and (kv_heads % tp == 0 or tp % kv_heads == 0)
    assert layout.is_padded != divides
    if divides:
        assert layout.query_sources() == list(range(heads))
        assert layout.kv_sources() == list(range(kv_heads))


@untimed
@given(st.integers(1, 200_000), tensor_sizes)
def test_mlp_columns_are_shared_evenly_and_no_rank_takes_64_too_many(columns: int, tp: int) -> None:
    padded = padded_mlp(columns, tp)
    assert padded % tp == 0
    assert 0 <= padded // tp - ceil(columns / tp) < 64
    assert padded == columns or columns % tp


@untimed
@given(st.integers(1, 300_000), tensor_sizes)
def test_words_are_shared_evenly_after_vllms_own_padding(words: int, tp: int) -> None:
    padded = padded_vocabulary(words, tp)
    assert padded >= words
    assert 64 * ceil(padded / 64) % tp == 0
    assert padded == words or 64 * ceil(words / 64) % tp


@pytest.mark.parametrize(
    ("heads", "kv_heads", "tp", "expected"),
    [
        pytest.param(4, 2, 3, (6, 3), id="the case that started it: the third rank gets zeros"),
        pytest.param(64, 8, 3, (72, 9), id="Llama-3.1-70B on 3 GPUs: 24 heads a rank instead of 21.3"),
        pytest.param(64, 8, 6, (96, 12), id="Llama-3.1-70B on 6 GPUs: two KV heads a rank"),
        pytest.param(64, 8, 16, (64, 8), id="more ranks than KV heads: vLLM's own copies"),
        pytest.param(32, 8, 12, (48, 12), id="12 ranks: 8 KV heads do not stretch to two copies each"),
        pytest.param(8, 1, 3, (9, 3), id="one KV head for all is copied to each rank"),
        pytest.param(6, 2, 4, (8, 4), id="a group of 3 is halved into 2 and 1"),
        pytest.param(12, 12, 5, (15, 15), id="without grouped queries every head has its own KV head"),
    ],
)
def test_layouts(heads: int, kv_heads: int, tp: int, expected: tuple[int, int]) -> None:
    layout = head_layout(heads, kv_heads, tp)
    assert (layout.padded_heads, layout.kv_slots) == expected


def test_heads_that_share_kv_heads_unevenly_are_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match="7 attention heads do not share 2 KV heads evenly"):
        head_layout(7, 2, 3)


WIDTH = 3
HIDDEN = 5


def attention(queries: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Causal attention of [tokens, heads, width]; query heads share KV heads in equal groups."""
    readers = queries.shape[1] // keys.shape[1]
    keys, values = np.repeat(keys, readers, 1), np.repeat(values, readers, 1)
    scores = np.einsum("qhd,khd->hqk", queries, keys)
    scores += np.triu(np.full(scores.shape[1:], -np.inf), 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), values)


def taken(blocks: np.ndarray, sources: list[int | None]) -> np.ndarray:
    """Blocks along the first axis in the order of `sources`, zeros for None."""
    zero = np.zeros_like(blocks[:1])
    return np.concatenate([blocks, zero])[[len(blocks) if source is None else source for source in sources]]


@untimed
@given(models().filter(lambda model: model[0] <= 32), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_the_ranks_together_compute_the_attention_of_the_checkpoint(
    model: tuple[int, int], tp: int, seed: int
) -> None:
    heads, kv_heads = model
    chance = np.random.default_rng(seed)
    text = chance.normal(size=(4, HIDDEN))
    wq, wk, wv = (chance.normal(size=(count, HIDDEN, WIDTH)) for count in (heads, kv_heads, kv_heads))
    wo = chance.normal(size=(heads, WIDTH, HIDDEN))

    def output(wq: np.ndarray, wk: np.ndarray, wv: np.ndarray, wo: np.ndarray) -> np.ndarray:
        q, k, v = (np.einsum("th,nhd->tnd", text, weight) for weight in (wq, wk, wv))
        return np.einsum("qhd,hdo->qo", attention(q, k, v), wo)

    ranks = ranks_of(head_layout(heads, kv_heads, tp), tp)
    together = sum(
        output(taken(wq, rank.queries), taken(wk, rank.kv), taken(wv, rank.kv), taken(wo, rank.queries))
        for rank in ranks
    )
    np.testing.assert_allclose(together, output(wq, wk, wv, wo), rtol=0, atol=1e-9)
