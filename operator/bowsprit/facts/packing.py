"""config.json in little room: as reports of preflight carry it, and as revisions keep it.

The runtime packs alike (bowsprit_runtime/preflight/model_files.py).
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

_LABELS = frozenset({"id2label", "label2id", "_name_or_path", "transformers_version"})
"""Long or private, and nothing that planning reads."""


def packed(config: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in config.items() if key not in _LABELS}
    return base64.b64encode(zlib.compress(json.dumps(kept, separators=(",", ":")).encode(), 9)).decode()


def unpacked(text: Any, limit: int) -> bytes | None:
    """config.json itself, cut off at `limit` bytes, for a few may unpack to gigabytes; None for anything
    else."""
    if not isinstance(text, str):
        return None
    try:
        return zlib.decompressobj().decompress(base64.b64decode(text, validate=True), limit)
    except (binascii.Error, ValueError, zlib.error):
        return None
