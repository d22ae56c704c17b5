"""Tiny checkpoints that a real vLLM serves, made of nothing but the standard library.

Tests of plugins need weights, a config.json and a tokenizer. A hub would be a network, and the random weights
that transformers makes change between releases. Here the same bytes come out of every Python, in a second:

    python e2e/models/tiny.py llama DIR      # 4 heads, 2 KV heads, MLP of 512, 512 words: none divides by 3
    python e2e/models/tiny.py opt DIR        # 4 heads, MLP of 1,024, 512 words

The weights are random and scaled so that greedy decoding is decided by wide margins in float32. No word ends
a text: a completion is as long as it was asked to be.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import struct
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

HIDDEN = 256
HEAD = 64
HEADS = 4
KV_HEADS = 2
LAYERS = 4
POSITIONS = 2048
LLAMA_MLP = 512
OPT_MLP = 1024
OPT_OFFSET = 2
"""Rows of the position table that OPT leaves unused."""
SEED = 20261130

Tensor = tuple[str, tuple[int, ...], float]
"""Name, shape, and the half-width of the uniform distribution; 0 stands for a norm's weight, all ones."""

AHOY = " ahoy"
"""A word that no untrained model says twice; the example plugin says nothing else."""
_PAD = "<pad>"
_SIZE = 512


def _byte_letters() -> list[str]:
    """The printable letter that byte-level tokenizers write for each byte, as GPT-2 chose them."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) if byte in shown else chr(256 + hidden.index(byte)) for byte in range(256)]


_LETTERS = _byte_letters()
_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwyz" for vowel in "aeiou"]
_CLOSED = [syllable + "n" for syllable in _SYLLABLES]


def _spelled(word: str) -> str:
    return "".join(_LETTERS[byte] for byte in word.encode())


VOCABULARY: dict[str, int] = {
    word: number
    for number, word in enumerate(
        [
            _PAD,
            *_LETTERS,
            *map(_spelled, [AHOY, *(f" {syllable}" for syllable in _SYLLABLES), *_SYLLABLES, *_CLOSED]),
        ][:_SIZE]
    )
}
"""Token -> id, as tokenizer.json spells it."""
AHOY_ID = VOCABULARY[_spelled(AHOY)]

LLAMA_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "head_dim": HEAD,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": LLAMA_MLP,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "max_position_embeddings": POSITIONS,
    "vocab_size": len(VOCABULARY),
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
    "torch_dtype": "float32",
}
OPT_CONFIG = {
    "architectures": ["OPTForCausalLM"],
    "model_type": "opt",
    "hidden_size": HIDDEN,
    "word_embed_proj_dim": HIDDEN,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "ffn_dim": OPT_MLP,
    "activation_function": "relu",
    "do_layer_norm_before": True,
    "enable_bias": True,
    "layer_norm_elementwise_affine": True,
    "max_position_embeddings": POSITIONS,
    "vocab_size": len(VOCABULARY),
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
    "torch_dtype": "float32",
}


def write(kind: str, folder: Path) -> Path:
    """A whole checkpoint of `kind` (a key of KINDS) in `folder`, which is made; returns `folder`."""
    config, tensors = KINDS[kind]
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("config.json", config),
        ("generation_config.json", {"do_sample": False}),
        ("tokenizer.json", _tokenizer()),
        ("tokenizer_config.json", _tokenizer_config(POSITIONS)),
    ):
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _write_safetensors(folder / "model.safetensors", list(tensors()))
    return folder


def _llama() -> Iterator[Tensor]:
    yield "model.embed_tokens.weight", (len(VOCABULARY), HIDDEN), _unit(1)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", (HIDDEN,), 0
        yield f"{at}.self_attn.q_proj.weight", (HEADS * HEAD, HIDDEN), _unit(HIDDEN)
        yield f"{at}.self_attn.k_proj.weight", (KV_HEADS * HEAD, HIDDEN), _unit(HIDDEN)
        yield f"{at}.self_attn.v_proj.weight", (KV_HEADS * HEAD, HIDDEN), _unit(HIDDEN)
        yield f"{at}.self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD), _unit(HEADS * HEAD)
        yield f"{at}.post_attention_layernorm.weight", (HIDDEN,), 0
        yield f"{at}.mlp.gate_proj.weight", (LLAMA_MLP, HIDDEN), _unit(HIDDEN)
        yield f"{at}.mlp.up_proj.weight", (LLAMA_MLP, HIDDEN), _unit(HIDDEN)
        yield f"{at}.mlp.down_proj.weight", (HIDDEN, LLAMA_MLP), _unit(LLAMA_MLP)
    yield "model.norm.weight", (HIDDEN,), 0
    yield "lm_head.weight", (len(VOCABULARY), HIDDEN), 3 * _unit(HIDDEN)


def _opt() -> Iterator[Tensor]:
    yield "model.decoder.embed_tokens.weight", (len(VOCABULARY), HIDDEN), _unit(1)
    yield "model.decoder.embed_positions.weight", (POSITIONS + OPT_OFFSET, HIDDEN), _unit(1)
    for layer in range(LAYERS):
        at = f"model.decoder.layers.{layer}"
        for norm in ("self_attn_layer_norm", "final_layer_norm"):
            yield f"{at}.{norm}.weight", (HIDDEN,), 0
            yield f"{at}.{norm}.bias", (HIDDEN,), 0.1
        for name, rows, columns in (
            ("self_attn.q_proj", HIDDEN, HIDDEN),
            ("self_attn.k_proj", HIDDEN, HIDDEN),
            ("self_attn.v_proj", HIDDEN, HIDDEN),
            ("self_attn.out_proj", HIDDEN, HIDDEN),
            ("fc1", OPT_MLP, HIDDEN),
            ("fc2", HIDDEN, OPT_MLP),
        ):
            yield f"{at}.{name}.weight", (rows, columns), _unit(columns)
            yield f"{at}.{name}.bias", (rows,), 0.1
    yield "model.decoder.final_layer_norm.weight", (HIDDEN,), 0
    yield "model.decoder.final_layer_norm.bias", (HIDDEN,), 0.1
    yield "lm_head.weight", (len(VOCABULARY), HIDDEN), 3 * _unit(HIDDEN)


def _tokenizer() -> dict[str, object]:
    """tokenizer.json: a byte-level BPE without merges; words are found whole (`ignore_merges`) or spelled
    byte by byte."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    pad = {"id": VOCABULARY[_PAD], "content": _PAD, "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{**pad, **flags}],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": VOCABULARY,
            "merges": [],
        },
    }


def _tokenizer_config(positions: int) -> dict[str, object]:
    """tokenizer_config.json of transformers; `positions` is the longest text, in tokens."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": positions,
        "pad_token": _PAD,
        "clean_up_tokenization_spaces": False,
        "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
    }


KINDS: dict[str, tuple[dict[str, object], Callable[[], Iterator[Tensor]]]] = {
    "llama": (LLAMA_CONFIG, _llama),
    "opt": (OPT_CONFIG, _opt),
}


def _unit(inputs: int) -> float:
    """Half-width that makes the sum of `inputs` products with values of variance one have variance one."""
    return math.sqrt(3 / inputs)


def _write_safetensors(path: Path, tensors: list[Tensor]) -> None:
    """The format by its definition: length of the header (u64), header (JSON), the tensors in a row."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape, _ in tensors:
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    chance = random.Random(SEED)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, shape, width in tensors:
            file.write(_values(math.prod(shape), width, chance))


def _values(count: int, width: float, chance: random.Random) -> bytes:
    if not width:
        return array("f", [1.0]).tobytes() * count
    return array("f", (width * (2 * chance.random() - 1) for _ in range(count))).tobytes()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make a tiny checkpoint that vLLM can serve.")
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    print(write(options.kind, options.folder))
