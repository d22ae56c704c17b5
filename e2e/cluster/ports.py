"""Ports for one control plane, so that several can run side by side.

A port that the kernel hands out (bind to 0, close, use later) may be given to somebody else in between, and
again while a killed API server is down. So a control plane claims a block of ports below the kernel's
ephemeral range, and holds the block's first port bound for as long as it lives: that is the mark by which
other control planes leave the block alone.
"""

from __future__ import annotations

import random
import socket

# Below Linux's ephemeral range (32768-60999) and Kubernetes' node ports (30000-32767).
FIRST_PORT, LAST_PORT = 20000, 29999
BLOCK_SIZE = 16


class PortBlock:
    """Sixteen neighbouring ports; `port(i)` is the i-th that a program may use."""

    def __init__(self) -> None:
        bases = list(range(FIRST_PORT, LAST_PORT - BLOCK_SIZE, BLOCK_SIZE))
        random.shuffle(bases)
        for base in bases:
            claim = _bind(base)
            if claim is None:
                continue
            if all(_is_free(base + i) for i in range(1, BLOCK_SIZE)):
                self._base, self._claim = base, claim
                return
            claim.close()
        raise OSError(f"no {BLOCK_SIZE} neighbouring free ports between {FIRST_PORT} and {LAST_PORT}")

    def port(self, index: int) -> int:
        """The index-th port of the block, counted from 0."""
        if not 0 <= index < BLOCK_SIZE - 1:
            raise IndexError(f"a control plane has {BLOCK_SIZE - 1} ports; {index} is not one of them")
        return self._base + 1 + index

    def release(self) -> None:
        """Lets other control planes have the block."""
        self._claim.close()


def _bind(port: int) -> socket.socket | None:
    candidate = socket.socket()
    try:
        candidate.bind(("127.0.0.1", port))
    except OSError:
        candidate.close()
        return None
    return candidate


def _is_free(port: int) -> bool:
    candidate = _bind(port)
    if candidate is None:
        return False
    candidate.close()
    return True
