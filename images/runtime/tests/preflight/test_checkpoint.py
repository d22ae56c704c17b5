"""Headers of safetensors files, of good ones and of those that somebody made to do harm."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight.checkpoint import MAX_HEADER_BYTES, Checkpoint, read
from bowsprit_runtime.report import Fault
from images.runtime.tests.checkpoints import raw_safetensors, safetensors

ONE = "model.safetensors"
TENSORS = {
    "model.embed_tokens.weight": ("BF16", [4, 2], 16),
    "model.layers.0.w.weight": ("F8_E4M3", [3, 2], 6),
    "model.layers.0.w.weight_scale": ("F32", [], 4),
    "model.layers.1.w.weight": ("F4", [4, 2], 4),
    "model.norm.weight": ("F32", [2], 8),
}


def seen(folder: Path, load_format: str = "auto") -> Checkpoint:
    found = read(str(folder), load_format)
    assert found is not None
    return found


def names(folder: Path, load_format: str = "auto") -> set[str]:
    return {tensor.name for tensor in seen(folder, load_format).tensors}


def test_floats_weigh_what_they_are_served_as_and_the_rest_what_it_is(tmp_path: Path) -> None:
    safetensors(tmp_path / ONE, TENSORS)
    layers = [[1, 6 + 2], [1, 4]]
    expected = {"layers": layers, "embedding": 16, "head": 0, "other": 4}
    assert seen(tmp_path).weights(2, 2) == expected
    assert seen(tmp_path).weights(2, 4) == {
        "layers": [[1, 6 + 4], [1, 4]],
        "embedding": 32,
        "head": 0,
        "other": 8,
    }


def test_of_several_files_those_count_that_vllm_loads(tmp_path: Path) -> None:
    for name in ("1", "2", "consolidated", "left-over"):
        safetensors(tmp_path / f"{name}.safetensors", {name: ("U8", [1], 1)})
    assert names(tmp_path) == {"consolidated"}
    assert names(tmp_path, "hf") == {"1", "2", "consolidated", "left-over"}
    index = {"weight_map": {"1": "1.safetensors", "2": "2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert names(tmp_path, "hf") == {"1", "2"}


def test_where_there_is_nothing_to_see_nothing_is_said(tmp_path: Path) -> None:
    assert read("meta-llama/Llama-3.1-8B", "auto") is None
    (tmp_path / "pytorch_model.bin").touch()
    assert read(str(tmp_path), "auto") is None
    safetensors(tmp_path / ONE, {})
    assert read(str(tmp_path), "auto") is None


def test_a_file_that_is_not_loaded_is_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / ONE).write_bytes(b"x")
    assert read(str(tmp_path), "pt") is None


def test_a_header_that_is_longer_than_is_read_is_no_fault(tmp_path: Path) -> None:
    raw_safetensors(tmp_path / ONE, b"{", MAX_HEADER_BYTES + 9, length=MAX_HEADER_BYTES + 1)
    assert read(str(tmp_path), "auto") is None


ENTRY = {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}


def header(**changes: Any) -> bytes:
    return json.dumps({"a": {**ENTRY, **changes}}).encode()


# What the file holds: header, bytes behind it, what it says of the header's length; and what is told of it.
HOSTILE: dict[str, tuple[bytes, int, int | None, str]] = {
    "a length beyond the file": (b"{}", 0, 3, "is cut off, or no safetensors file: of 10 bytes, 3 would"),
    "a length of 2^64": (b"{}", 0, 2**64 - 1, "of 10 bytes, 18446744073709551615 would be its header"),
    "a length that safetensors refuses": (b"{", 10**8 + 8, 10**8 + 1, "safetensors loads 100000000"),
    "no JSON": (b"{'a'", 0, None, "has a header that is no JSON"),
    "no text": (b"\xff\xfe", 0, None, "has a header that is no JSON"),
    "nested without end": (b"[" * 100_000, 0, None, "has a header that is no JSON"),
    "an integer of a million digits": (b'{"a": ' + b"9" * 10**6 + b"}", 0, None, "that is no JSON"),
    "NaN": (b'{"a": NaN}', 0, None, "has a header that is no JSON"),
    "a list": (b"[]", 0, None, "has a header that is a list; expected an object"),
    "an entry that is text": (b'{"a": "x"}', 0, None, "says of 'a' what cannot be: \"x\""),
    "a tensor without offsets": (header(data_offsets=None), 8, None, "says of 'a' what cannot be"),
    "offsets that begin before the file": (header(data_offsets=[-8, 0]), 8, None, "what cannot be"),
    "offsets that run backwards": (header(data_offsets=[8, 0]), 8, None, "what cannot be"),
    "offsets that are true": (header(shape=[], data_offsets=[False, True]), 1, None, "what cannot be"),
    "offsets of three": (header(data_offsets=[0, 8, 8]), 8, None, "what cannot be"),
    "offsets that are no integers": (header(data_offsets=[0.0, 8.0]), 8, None, "what cannot be"),
    "a file that was cut off": (
        header(),
        7,
        None,
        "is cut off: it has 7 bytes of weights, and its header says 8",
    ),
    "a file that is longer than it says": (
        header(),
        9,
        None,
        "has 9 bytes of weights, and its header says 8",
    ),
    "offsets at the end of the world": (
        header(dtype="F4", data_offsets=[10**17, 10**17 + 8]),
        8,
        None,
        "is cut off: it has 8 bytes of weights",
    ),
    "a shape of another size": (header(shape=[2, 3]), 8, None, "says of 'a' what cannot be"),
    "a shape of less than nothing": (header(shape=[-2, -2]), 8, None, "says of 'a' what cannot be"),
    "more dimensions than there are": (header(shape=[1] * 99), 8, None, "says of 'a' what cannot be"),
    "no dtype": (header(dtype=7), 8, None, "says of 'a' what cannot be"),
    "the pointer of git": (b"ersion https://git-lfs.github.com/spec/v1\n", 0, ord("v"), "git lfs pull"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_weights_are_damaged_by(case: str, tmp_path: Path) -> None:
    content, size, length, message = HOSTILE[case]
    raw_safetensors(tmp_path / ONE, content, size, length)
    if case == "the pointer of git":
        (tmp_path / ONE).write_bytes(b"v" + content)
    with pytest.raises(Fault) as fault:
        read(str(tmp_path), "auto")
    assert (fault.value.reason, fault.value.blame) == (reasons.WEIGHTS_DAMAGED, "model")
    assert message in fault.value.message
    assert fault.value.message.startswith("model.safetensors ")
    assert len(fault.value.message) < 300


@pytest.mark.parametrize("size", range(8))
def test_a_file_of_a_few_bytes_is_named_with_its_size(size: int, tmp_path: Path) -> None:
    (tmp_path / ONE).write_bytes(b"x" * size)
    with pytest.raises(Fault, match=f"has {size} bytes"):
        read(str(tmp_path), "auto")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ONE)
    assert read(str(tmp_path), "auto") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 20) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.fixed_dictionaries({"dtype": JSON, "shape": JSON, "data_offsets": JSON})


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(max_size=3), JSON | ENTRIES, max_size=3) | JSON, st.integers(0, 20))
def test_whatever_a_header_says_it_is_read_or_a_fault(tmp_path: Path, content: Any, size: int) -> None:
    raw_safetensors(tmp_path / ONE, json.dumps(content).encode(), size)
    with suppress(Fault):
        found = read(str(tmp_path), "auto")
        assert found is None or sum(tensor.bytes for tensor in found.tensors) == size
