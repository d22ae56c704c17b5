"""Waiting for a condition: every start and every test polls with a deadline instead of sleeping for a
guessed time."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.05


class Timeout(Exception):
    """A condition did not come true before its deadline."""


def wait_until(
    what: str, condition: Callable[[], bool], seconds: float = 60.0, poll_seconds: float = POLL_SECONDS
) -> None:
    """Returns as soon as `condition()` is true; raises Timeout, naming `what`, after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Timeout(f"waited {seconds:.0f} s for {what}, in vain")
        time.sleep(poll_seconds)
