"""KV cache by vLLM's own rules: whole pages, a null page, windows, states, and groups of mixed models.

`REPORTED` are engines that logged how many requests of their longest context fit in how many GiB.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.facts.model import KvCache, KvKind, Layer
from bowsprit.plan.cache import cache
from bowsprit.plan.memory import GIB
from bowsprit.plan.wish import Demand
from tests.unit.plan.examples import LLAMA_8B

FULL, WINDOW = KvCache(KvKind.FULL, 8, 256), KvCache(KvKind.SLIDING, 8, 256, window=1024)
LATENT = KvCache(KvKind.MLA, 1, latent_values=576)


def model(*layers: KvCache, **more):
    return replace(LLAMA_8B, layers=tuple(Layer(1, 0, 0, 0, kv) for kv in layers), digest="cache", **more)


def test_whole_blocks_with_a_null_block_and_one_head_at_least():
    demand = Demand(max_model_len=100, concurrency=3)
    assert cache(model(FULL), demand, 1, 1).layers == ((3 * 7 + 1) * 16 * 8 * 256 * 2,)
    assert cache(model(FULL), demand, 16, 1).layers == ((3 * 7 + 1) * 16 * 1 * 256 * 2,)
    assert cache(model(LATENT), demand, 8, 1).layers == ((3 * 7 + 1) * 16 * 576 * 2,)


def test_a_window_keeps_itself_and_once_what_is_in_flight():
    demand = Demand(max_model_len=131072, concurrency=2, max_batched_tokens=2048)
    page = 16 * 8 * 256 * 2
    assert cache(model(WINDOW), demand, 1, 1).layers == ((2 * (64 + 1) + 2 * 128 + 1) * page,)
    assert cache(model(WINDOW), demand, 1, 3).layers == ((2 * (64 + 1) + 4 * 128 + 1) * page,)
    short = replace(demand, max_model_len=512)
    assert cache(model(WINDOW), short, 1, 1).layers == ((2 * 32 + 2 + 1) * page,)


def test_kinds_that_do_not_fill_their_last_group_pay_for_it():
    demand = Demand(max_model_len=4096)
    alone = cache(model(WINDOW), demand, 1, 1).layers[0]
    answer = cache(model(*(FULL if i % 6 == 5 else WINDOW for i in range(62))), demand, 1, 1)
    assert sum(answer.layers) == pytest.approx(60 * alone + 10 * cache(model(FULL), demand, 1, 1).layers[0])
    assert answer.spill == 0


def test_nearly_as_many_of_each_kind_are_one_group_each():
    demand = Demand(max_model_len=4096)
    alone = cache(model(WINDOW), demand, 1, 1).layers[0]
    answer = cache(model(*[FULL] * 5, *[WINDOW] * 4), demand, 1, 1)
    assert sum(answer.layers[5:]) == pytest.approx(5 * alone)


def test_groups_over_stages_may_need_one_layer_of_each_group_more():
    demand = Demand(max_model_len=4096)
    layers = [FULL if i % 6 == 5 else WINDOW for i in range(12)]
    answer = cache(model(*layers), demand, 1, 2)
    assert answer.spill == pytest.approx(sum(answer.layers[:6]))


def test_widths_alone_make_no_groups():
    demand = Demand(max_model_len=4096)
    wide = replace(FULL, values_per_head=512)
    answer = cache(model(FULL, FULL, wide), demand, 1, 1)
    assert answer.layers[2] == 2 * answer.layers[0]


def test_windows_that_are_kept_whole_are_as_layers_without():
    demand = Demand(max_model_len=131072, whole_windows=True)
    answer = cache(model(FULL, WINDOW, WINDOW, WINDOW), demand, 1, 1)
    assert len(set(answer.layers)) == 1


def test_a_state_fills_a_page_and_pages_are_large_enough_for_it():
    state = KvCache(KvKind.STATE, state_bytes=1_097_728)
    attention = KvCache(KvKind.FULL, 2, 512)
    answer = cache(model(attention, state, state, state), Demand(max_model_len=262144), 2, 1)
    page = 544 * 1024
    assert answer.layers == ((482 + 1) * page, 3 * page, 3 * page, 3 * page)
    wide = cache(model(attention, state), Demand(max_model_len=262144, wide_states=True), 2, 1)
    assert wide.layers[1] == 3 * 1072 * 1024


def test_states_alone_take_what_they_are():
    state = KvCache(KvKind.STATE, state_bytes=1000)
    assert cache(model(state), Demand(concurrency=4), 2, 1).layers == ((2 * 4 + 1) * 500,)


GEMMA3_FULL = KvCache(KvKind.FULL, 16, 256)
GEMMA3_WINDOW = KvCache(KvKind.SLIDING, 16, 256, window=1024)
GEMMA3_SMALL_FULL = KvCache(KvKind.FULL, 1, 512)
GEMMA3_SMALL_WINDOW = KvCache(KvKind.SLIDING, 1, 512, window=512)
QWEN3_NEXT = (KvCache(KvKind.FULL, 2, 512), KvCache(KvKind.STATE, state_bytes=1_097_728))


def pattern(full: KvCache, other: KvCache, layers: int, every: int) -> list[KvCache]:
    return [full if i % every == every - 1 else other for i in range(layers)]


REPORTED = {
    "gemma-3-27b, 4,096 tokens": (pattern(GEMMA3_FULL, GEMMA3_WINDOW, 62, 6), 1, 4096, 109.86, 50.05),
    "gemma-3-1b, 2,048 tokens": (
        pattern(GEMMA3_SMALL_FULL, GEMMA3_SMALL_WINDOW, 26, 6),
        1,
        2048,
        25.39,
        461.21,
    ),
    "Qwen3-Next-80B, 262,144 tokens on two GPUs": (pattern(*QWEN3_NEXT, 48, 4), 2, 262144, 44.59, 14.77),
}


@pytest.mark.parametrize(
    ("layers", "tensor", "length", "available", "requests"), REPORTED.values(), ids=REPORTED
)
def test_one_request_of_the_longest_context_needs_what_engines_report(
    layers, tensor, length, available, requests
):
    """From below by the null pages and the second copy of a state, which engines count once; never less."""
    need = sum(cache(model(*layers), Demand(length, max_batched_tokens=8192), tensor, 1).layers) / GIB
    assert available / requests <= need <= 1.02 * available / requests
