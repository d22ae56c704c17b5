"""What a checkpoint holds, by the headers of its safetensors files; not a weight is read.

A file begins with the length of its header (8 bytes, little-endian), and the header is a JSON object: name ->
{"dtype", "shape", "data_offsets": [begin, end]}. Files come from volumes that anybody may have written, so
nothing in them is believed: a header is bounded, every entry checked, and what the safetensors library would
refuse to load is a fault here already.
"""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight import model_files, weigh
from bowsprit_runtime.report import Fault

MAX_HEADER_BYTES = 8 * 1024 * 1024
"""Some 60,000 tensors in one file. Of an image's weights preflight has no more (render/surroundings.py)."""
_MAX_LOADED_HEADER = 100_000_000
"""The safetensors library refuses more."""
_MAX_ALL = 64 * 1024 * 1024
"""Of all headers together."""
_MAX_DIGITS = 18
_MAX_DIMENSIONS = 16

_WIDTHS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 8),
    **dict.fromkeys(("F32", "I32", "U32"), 4),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 2),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 1),
}
"""Bytes of a value; of other dtypes, which pack several values into a byte or are newer, the offsets tell."""
_CAST = ("F64", "F32", "F16", "BF16")
"""What the engine holds in the dtype in which it serves; the rest is quantized and stays as it is."""

_LFS_POINTER = b"version https://git-lfs"
_BY_CONSOLIDATED = ("auto", "mistral")
"""Load formats that take consolidated*.safetensors where there are any (vLLM's default_loader.py)."""
_BY_SAFETENSORS = (
    *_BY_CONSOLIDATED,
    *("hf", "safetensors", "fastsafetensors", "instanttensor", "runai_streamer", "bitsandbytes"),
)
"""Those that take *.safetensors where there are any; of others such files are no weights."""


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str
    bytes: int


@dataclass(frozen=True)
class Checkpoint:
    tensors: tuple[Tensor, ...]

    def weights(self, layers: int, width: int) -> dict[str, Any]:
        """The report's `checkpoint`: bytes of the tensors by what they are of, when floats are served with
        `width` bytes."""
        sizes = {tensor.name: _served(tensor, width) for tensor in self.tensors}
        return weigh.by_name(sizes, layers)


def _served(tensor: Tensor, width: int) -> int:
    return tensor.bytes // _WIDTHS[tensor.dtype] * width if tensor.dtype in _CAST else tensor.bytes


def read(model: str, load_format: str) -> Checkpoint | None:
    """Of a folder in which weights_fault finds none; None when it has no safetensors, or headers that are too
    long to be read here. Raises Fault."""
    folder = Path(model)
    if not folder.is_dir() or load_format not in _BY_SAFETENSORS:
        return None
    found: list[Tensor] = []
    left = _MAX_ALL
    for file in _files(folder, load_format):
        header = _header(file)
        if header is None or len(header) > left:
            return None
        left -= len(header)
        found += _tensors(file, header)
    return Checkpoint(tuple(found)) if found else None


def _files(folder: Path, load_format: str) -> list[Path]:
    """Those that vLLM would load."""
    there = sorted(file for file in folder.glob("*.safetensors") if file.is_file())
    consolidated = [file for file in there if file.name.startswith("consolidated")]
    if consolidated and load_format in _BY_CONSOLIDATED:
        return consolidated
    named = model_files.files_in_index(folder)
    return [file for file in there if file.name in named] if named else there


def _header(file: Path) -> bytes | None:
    """None when it is too long to be read here. Raises Fault."""
    with _opened(file) as descriptor:
        size = os.fstat(descriptor.fileno()).st_size
        begin = descriptor.read(len(_LFS_POINTER))
        if begin == _LFS_POINTER:
            raise _damaged(file, "is the pointer that git leaves in place of a large file; run git lfs pull")
        if size < 8:
            raise _damaged(file, f"has {size} bytes; a safetensors file has 8 and a header at least")
        length = int.from_bytes(begin[:8], "little")
        if length > size - 8:
            what = f"is cut off, or no safetensors file: of {size} bytes, {length} would be its header"
            raise _damaged(file, what)
        if length > _MAX_LOADED_HEADER:
            raise _damaged(file, f"has a header of {length} bytes; safetensors loads {_MAX_LOADED_HEADER}")
        if length > MAX_HEADER_BYTES:
            return None
        descriptor.seek(8)
        return descriptor.read(length)


def _opened(file: Path) -> BinaryIO:
    """Never waits: what was a file a moment ago may be a pipe now."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _damaged(file, f"cannot be opened: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _damaged(file, "is no file")
    return os.fdopen(descriptor, "rb")


def _tensors(file: Path, header: bytes) -> list[Tensor]:
    """Raises Fault."""
    found: list[Tensor] = []
    ends = 0
    for name, entry in _entries(file, header):
        tensor = _tensor(name, entry)
        if tensor is None:
            raise _damaged(file, f"says of {name[:80]!r} what cannot be: {json.dumps(entry)[:120]}")
        found.append(tensor)
        ends = max(ends, entry["data_offsets"][1])
    there, taken = file.stat().st_size - 8 - len(header), sum(tensor.bytes for tensor in found)
    if ends > there:
        raise _damaged(file, f"is cut off: it has {there} bytes of weights, and its header says {ends}")
    if taken != there:
        raise _damaged(file, f"has {there} bytes of weights, and its header says {taken}")
    return found


def _entries(file: Path, header: bytes) -> list[tuple[str, Any]]:
    try:
        content = json.loads(header.decode("utf-8"), parse_int=_integer, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise _damaged(file, "has a header that is no JSON") from None
    if not isinstance(content, dict):
        raise _damaged(file, f"has a header that is a {type(content).__name__}; expected an object")
    return [(name, entry) for name, entry in content.items() if name != "__metadata__"]


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("an integer that counts nothing")
    return int(text)


def _refused(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _tensor(name: str, entry: Any) -> Tensor | None:
    """None for an entry that no library would take."""
    if not isinstance(entry, dict):
        return None
    dtype, shape, offsets = (
        entry.get("dtype"),
        _counts(entry.get("shape")),
        _counts(entry.get("data_offsets")),
    )
    if not isinstance(dtype, str) or shape is None or offsets is None or len(offsets) != 2:
        return None
    size = offsets[1] - offsets[0]
    if size < 0 or (dtype in _WIDTHS and math.prod(shape) * _WIDTHS[dtype] != size):
        return None
    return Tensor(name, dtype, size)


def _counts(values: Any) -> list[int] | None:
    if not isinstance(values, list) or len(values) > _MAX_DIMENSIONS:
        return None
    return values if all(type(value) is int and value >= 0 for value in values) else None


def _damaged(file: Path, what: str) -> Fault:
    return Fault(reasons.WEIGHTS_DAMAGED, "model", f"{file.name} {what}")
