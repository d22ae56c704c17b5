"""Small words for messages: counts with their nouns, lists that stay short, and the limit of a condition."""

from __future__ import annotations

from collections.abc import Sequence

MESSAGE_MAX = 1024
"""Longest condition message, in characters. The API server allows 32768; a reader does not."""


def cut(message: str, limit: int = MESSAGE_MAX) -> str:
    """Shorten in the middle: what happened stands first, and what to do next stands last."""
    if len(message) <= limit:
        return message
    head = (limit - 3) * 2 // 3
    return f"{message[:head]} … {message[len(message) - (limit - 3 - head) :]}"


def count(number: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def share(part: int, whole: int, noun: str, state: str = "") -> str:
    """`1 of 2 pods bound`; `3 pods bound, 2 asked for` when there are more than that."""
    words = f" {state}" if state else ""
    if part > whole:
        return f"{count(part, noun)}{words}, {whole} asked for"
    return f"{part} of {count(whole, noun)}{words}"


def listed(names: Sequence[str], limit: int = 4) -> str:
    """`a, b and 3 more`: the first names and how many follow."""
    shown = list(dict.fromkeys(names))
    if len(shown) <= limit:
        return ", ".join(shown)
    return f"{', '.join(shown[:limit])} and {len(shown) - limit} more"
