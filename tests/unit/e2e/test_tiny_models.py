"""The tiny models are the same bytes everywhere, and they are what their config.json says."""

from __future__ import annotations

import hashlib
import json
import math
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.models import tiny

WEIGHTS = {
    "llama": "571f1936e3df07d84e6c333885a271a3f8c7ffaaf2afe116f9905b0c06b75312",
    "opt": "8c3079fb2aa6c778fce3a54ede2a151b74fda3c2fd11c9d67854eec3d33c50e2",
}


@pytest.fixture(scope="module", params=sorted(tiny.KINDS))
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return request.param, tiny.write(request.param, tmp_path_factory.mktemp(request.param))


def header_of(folder: Path) -> dict[str, Any]:
    with (folder / "model.safetensors").open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header: dict[str, Any] = json.loads(file.read(length))
        data = folder.joinpath("model.safetensors").stat().st_size - 8 - length
    assert max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__") == data
    return header


def test_the_weights_are_the_same_bytes_on_every_machine(checkpoint: tuple[str, Path]) -> None:
    kind, folder = checkpoint
    assert hashlib.sha256(folder.joinpath("model.safetensors").read_bytes()).hexdigest() == WEIGHTS[kind]


def test_every_tensor_has_the_bytes_of_its_shape(checkpoint: tuple[str, Path]) -> None:
    header = header_of(checkpoint[1])
    header.pop("__metadata__")
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        assert end - start == 4 * math.prod(entry["shape"]), name


def test_embedding_and_head_are_as_wide_as_the_vocabulary(checkpoint: tuple[str, Path]) -> None:
    _, folder = checkpoint
    config = json.loads(folder.joinpath("config.json").read_text())
    shapes = {name: entry.get("shape") for name, entry in header_of(folder).items()}
    words = [shape for name, shape in shapes.items() if "embed_tokens" in name or "lm_head" in name]
    assert words == [[config["vocab_size"], config["hidden_size"]]] * 2


def test_nothing_of_the_llama_divides_by_three() -> None:
    config = tiny.LLAMA_CONFIG
    for field in ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"):
        size = config[field]
        assert isinstance(size, int)
        assert size % 3, field


def test_every_id_of_the_models_is_a_word_of_the_tokenizer() -> None:
    assert sorted(tiny.VOCABULARY.values()) == list(range(512))
    assert tiny.VOCABULARY["Ġahoy"] == tiny.AHOY_ID


def test_it_runs_as_a_file_where_nothing_else_is_there(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(Path(tiny.__file__)), "llama", str(tmp_path / "model")]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 0, failed.stderr
    assert tmp_path.joinpath("model", "config.json").exists()
