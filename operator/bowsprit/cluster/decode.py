"""JSON from the API server, however deep somebody has nested it.

Fields of free form (`hfOverrides`) may be nested 10,000 levels deep, and Python reads about 1,000. One such
object must not keep all others from being read: where it is too deep it is cut off, so that whoever judges it
still finds it too deep.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 200
"""Levels that are kept of a document that Python cannot read; more than any valid object has."""

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


def decode(text: bytes) -> Any:
    """The document. ValueError: it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(_shallow(text))


def _shallow(text: bytes) -> bytes:
    """The same with `null` in place of whatever lies deeper than MAX_DEPTH."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKENS.finditer(text):
        if token[0] in (b"{", b"["):
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept.append(text[begin : token.start()] + b"null")
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if depth == MAX_DEPTH:
                begin = token.end()
    return b"".join([*kept, text[begin:]])
