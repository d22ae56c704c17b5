"""Hears what is logged as an error: vLLM and many plugins log an exception and go on, and the cause is lost.

Taken at the Logger class itself, since plugins replace handlers and propagation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock


@dataclass(frozen=True)
class Logged:
    """One record of level ERROR or above."""

    text: str
    error: BaseException | None


@contextmanager
def errors() -> Iterator[list[Logged]]:
    """What is logged meanwhile."""
    heard: list[Logged] = []
    handle = logging.Logger.handle

    def hearing(logger: logging.Logger, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            error = record.exc_info[1] if record.exc_info else None
            heard.append(Logged(record.getMessage(), error))
        handle(logger, record)

    with mock.patch.object(logging.Logger, "handle", hearing):
        yield heard
