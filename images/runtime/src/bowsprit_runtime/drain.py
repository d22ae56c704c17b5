"""Pre-stop of the ranks without a server: they stop after their head.

A worker that stops before its head fails every request that the head is still draining; when the head's port
is closed there is nothing left to wait for. The pod's grace period bounds it.
"""

from __future__ import annotations

import os
import socket
import time

from bowsprit_runtime import alive


def main(arguments: list[str]) -> int:
    """`drain PORT`: returns when the head no longer listens on its HTTP port."""
    rank = alive.recalled()
    address = (rank and rank.met) or os.environ.get("LWS_LEADER_ADDRESS", "")
    while address and _listens(address, int(arguments[0])):
        time.sleep(1)
    return 0


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True
