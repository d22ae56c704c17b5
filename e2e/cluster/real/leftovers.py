"""What real nodes leave on the machine besides their namespaces: control groups, the bridge, empty folders.

Removed when a cluster stops and before one starts; and when the Python process of a cluster is killed, by
this module's own process (`python -m e2e.cluster.real.leftovers`), which waits for that.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from e2e.cluster.real import cgroups, network
from e2e.cluster.real.namespaces import STATE
from e2e.cluster.waiting import wait_until

ROOT = Path(__file__).parents[3]
END_SECONDS = 30.0


def remove() -> None:
    """Removes everything, once the last process of the nodes has ended."""
    wait_until("the last container to end", lambda: not cgroups.processes(), END_SECONDS)
    cgroups.remove()
    network.remove_bridge()
    for each in STATE:
        with suppress(OSError):  # somebody else's, and in use
            Path("/var/lib", each).rmdir()


class Watch:
    """Removes the leftovers when this Python process ends without having done so."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "e2e.cluster.real.leftovers"]
        # A session of its own, so that Ctrl-C or a kill of the process group does not end it first.
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True)

    def release(self) -> None:
        """Lets it do its work now, and waits."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


if __name__ == "__main__":
    sys.stdin.read()
    remove()
