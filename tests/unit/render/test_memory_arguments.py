"""Every engine argument that changes how much memory a model takes is planned for, or said beside the plan.

vLLM's own list of flags is the oracle for spellings: the shortest beginning that its parser takes is read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bowsprit.facts.config import facts_from_config
from bowsprit.facts.model import ModelFacts
from bowsprit.plan import memory
from bowsprit.plan.cache import cache
from bowsprit.plan.wish import Demand
from bowsprit.render.engine_args import has_flag
from bowsprit.render.uncounted import uncounted
from bowsprit.render.wishes import demand_of, dtype_of
from tests.unit.facts.test_families import LLAMA
from tests.unit.render.examples import spec

FLAGS_FILE = Path(__file__).resolve().parents[4] / "shared" / "reference" / "vllm_serve_flags.json"


def flags() -> list[str]:
    if not FLAGS_FILE.exists():
        pytest.skip("vLLM's list of flags is not there")
    return [flag for option in json.loads(FLAGS_FILE.read_text())["flags"] for flag in option["flags"]]


def shortest(flag: str, known: list[str]) -> str:
    """The shortest beginning that means this flag and no other."""
    beginnings = (flag[:end] for end in range(3, len(flag)))
    return next(
        (each for each in beginnings if all(other == flag or not other.startswith(each) for other in known)),
        flag,
    )


COUNTED: dict[str, tuple[list[str], Demand]] = {
    "the block": (["--block-size", "64"], replace(Demand(), block_tokens=64)),
    "a block that vLLM refuses": (["--block-size=-16"], Demand()),
    "LoRA": (["--enable-lora"], replace(Demand(), lora_slots=1)),
    "several adapters of a rank": (
        ["--enable-lora", "--max-loras=4", "--max-lora-rank=64"],
        replace(Demand(), lora_slots=4, lora_rank=64),
    ),
    "no LoRA after all": (["--enable-lora", "--no-enable-lora", "--max-loras=4"], Demand()),
    "windows that are kept whole": (["--disable-sliding-window"], replace(Demand(), whole_windows=True)),
    "one pool for all kinds of layers": (
        ["--disable-hybrid-kv-cache-manager"],
        replace(Demand(), whole_windows=True),
    ),
    "wide states": (["--mamba-ssm-cache-dtype", "float32"], replace(Demand(), wide_states=True)),
    "wide states and convolutions": (["--mamba-cache-dtype=float32"], replace(Demand(), wide_states=True)),
    "states as usual": (["--mamba-cache-dtype=bfloat16"], Demand()),
    "no graphs": (["--enforce-eager"], replace(Demand(), eager=True)),
    "sequences": (["--max-num-seqs=64"], replace(Demand(), max_sequences=64)),
}


@pytest.mark.parametrize(("args", "demand"), COUNTED.values(), ids=COUNTED)
def test_what_can_be_reckoned_is_in_the_demand(args: list[str], demand: Demand) -> None:
    assert demand_of(spec(engine={"args": args})) == demand


DTYPES = {
    "--dtype=bfloat16": "bfloat16",
    "--dtype=half": "float16",
    "--dtype=float16": "float16",
    "--dtype=float": "float32",
    "--dtype=float32": "float32",
    "--dty=float32": "float32",
    "--dt=half": "float16",
    "--dtype=auto": None,
    "--disable-log-stats": None,
}


@pytest.mark.parametrize("argument", DTYPES)
def test_the_dtype_by_its_one_name(argument: str) -> None:
    assert dtype_of(spec(engine={"args": [argument]})) == DTYPES[argument]


UNCOUNTED: dict[str, tuple[list[str], str]] = {
    "a draft model": (['--speculative-config={"model": "x", "num_speculative_tokens": 5}'], "draft model"),
    "a draft model by its short flag": (["-sc", '{"method": "eagle3", "model": "x"}'], "draft model"),
    "in parts": (["--speculative-config.method=eagle3", "--speculative-config.model=x"], "draft model"),
    "by flags of its own": (["--spec-method=mtp", "--spec-tokens=2"], "draft model"),
    "without a model": (['--speculative-config={"method": "ngram"}'], ""),
    "without a model, in parts": (["--speculative-config.method=ngram"], ""),
    "without a model, by a flag": (["--spec-method", "suffix"], ""),
    "not JSON": (["--speculative-config={"], "draft model"),
    "as long as an argument may be": (["--speculative-config=" + "[" * 2000], "draft model"),
    "quantization while loading": (["--quantization=fp8"], "Weights are counted as the checkpoint has them"),
    "by its short flag": (["-q", "fp8"], "Weights are counted as the checkpoint has them"),
    "with the value behind it": (["-qfp8"], "Weights are counted as the checkpoint has them"),
    "another config.json": (["--hf-config-path=/config"], "keep them equal"),
    "redundant experts": (["--enable-eplb"], "Redundant experts"),
    "nothing of the kind": (["--enable-prefix-caching", "--seed=1"], ""),
}


@pytest.mark.parametrize(("args", "words"), UNCOUNTED.values(), ids=UNCOUNTED)
def test_what_cannot_be_reckoned_is_said(args: list[str], words: str) -> None:
    said = uncounted(args)
    assert len(said) == bool(words)
    assert all(words in sentence for sentence in said)


READ = (
    *("--dtype", "--quantization", "--enable-lora", "--max-loras", "--max-lora-rank", "--speculative-config"),
    *("--spec-method", "--spec-model", "--spec-tokens", "--hf-config-path", "--block-size", "--max-num-seqs"),
    *("--mamba-cache-dtype", "--mamba-ssm-cache-dtype", "--disable-hybrid-kv-cache-manager"),
    *("--disable-sliding-window", "--enable-eplb", "--enforce-eager", "--max-num-batched-tokens"),
    *("--enable-chunked-prefill", "--api-key", "--ssl-certfile", "--api-server-count"),
)


@pytest.mark.parametrize("flag", READ)
def test_every_beginning_that_the_parser_takes_is_read(flag: str) -> None:
    known = flags()
    assert flag in known
    assert not [other for other in known if other != flag and flag.startswith(other)]
    beginning = shortest(flag, known)
    assert has_flag([beginning], flag)
    assert has_flag([beginning.replace("-", "_").replace("__", "--", 1) + "=1"], flag)
    assert not any(has_flag([other], flag) for other in known if not flag.startswith(other))


def llama(**more: Any) -> ModelFacts:
    facts = facts_from_config(json.dumps(LLAMA), **more)
    assert isinstance(facts, ModelFacts)
    return facts


def test_float32_doubles_weights_and_cache_and_is_other_facts() -> None:
    usual, wide = llama(), llama(dtype="float32")
    assert wide.digest != usual.digest
    assert wide.weight_bytes == 2 * usual.weight_bytes
    assert (wide.kv_dtype_bytes, wide.dtype_bytes, wide.dtype) == (4, 4, "float32")
    assert wide.rank_bytes == 2 * usual.rank_bytes
    assert llama(dtype="float16").weight_bytes == usual.weight_bytes


def test_an_index_counts_what_is_on_disk_and_the_dtype_what_is_served() -> None:
    total = llama().weight_bytes
    index = json.dumps({"metadata": {"total_size": total}})
    assert llama(dtype="float32", index_json=index).weight_bytes == 2 * total
    assert llama(dtype="float16", index_json=index).weight_bytes == total


def test_a_quantized_checkpoint_keeps_its_bytes_whatever_the_dtype() -> None:
    quantized = json.dumps({**LLAMA, "quantization_config": {"quant_method": "fp8"}})
    index = json.dumps({"metadata": {"total_size": 10**10}})
    facts = facts_from_config(quantized, dtype="float32", index_json=index)
    assert isinstance(facts, ModelFacts)
    assert facts.weight_bytes == 10**10


def test_adapters_take_their_rank_times_inputs_and_outputs_of_every_matrix() -> None:
    facts = llama()
    hidden, inner = LLAMA["hidden_size"], LLAMA["intermediate_size"]
    heads, kv_heads = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    values = 4 * hidden + 2 * heads + 2 * kv_heads + 3 * (hidden + inner)
    assert facts.layers[0].adapter_values == values
    plain, adapted = (
        memory.costs(facts, demand, 1, 1)
        for demand in (Demand(4096), Demand(4096, lora_slots=4, lora_rank=32))
    )
    assert adapted.layers[0] - plain.layers[0] == 4 * 32 * values * 2
    assert adapted.everywhere > plain.everywhere


def test_larger_blocks_round_the_context_up() -> None:
    small, large = (cache(llama(), Demand(1000, block_tokens=block), 1, 1).layers[0] for block in (16, 128))
    assert small / large == pytest.approx((63 + 1) * 16 / ((8 + 1) * 128))
