"""Files of weights for tests, that hold zeros or lie about what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

EMPTY = {"model.safetensors": (2).to_bytes(8, "little") + b"{}"}
"""Files of a checkpoint without any tensor, which is valid."""


def safetensors(file: Path, tensors: Mapping[str, tuple[str, list[int], int]]) -> Path:
    """Of name -> (dtype, shape, bytes)."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    return raw_safetensors(file, json.dumps(header).encode(), end)


def raw_safetensors(file: Path, header: bytes, size: int = 0, length: int | None = None) -> Path:
    """With whatever header before `size` bytes; `length` is what the file says of the header's."""
    begin = (len(header) if length is None else length).to_bytes(8, "little")
    with file.open("wb") as opened:
        opened.write(begin + header)
        opened.truncate(8 + len(header) + size)
    return file
