"""One spelling for one meaning: what is hashed or compared is written down in this form."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces; NaN and infinity are a ValueError, for they are not JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def short_hash(value: Any, length: int) -> str:
    """`length` lower-case hex digits over the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]
