"""The Linux namespaces of a real node: its own mounts, network, processes and host name.

Inside, /run, /var/log and the folders of containerd, kubelet and CNI are the node's own, so its programs
run with their default paths; the logs of containers outlive it in the cluster's directory. The first process
of the namespaces does nothing but wait and collect orphans; with its end the kernel ends all others, unmounts
all and takes down all links.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.processes import Program
from e2e.cluster.site import Site

STATE = ("cni", "containerd", "kubelet")
"""Folders below /var/lib that every node has for itself."""
# bash and no plain sh, because it collects orphans while it waits. It waits for a `sleep` in the background:
# a signal ends that wait, and a trap then runs, as it would not while a program runs in the foreground.
FIRST_PROCESS = """
set -eu
trap 'exit 0' TERM
name=$1 folder=$2; shift 2
hostname "$name"
mount -t tmpfs tmpfs /run
mount --bind "$folder/log" /var/log
for each in "$@"; do mount --bind "$folder/$each" "/var/lib/$each"; done
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$folder/ready"
sleep infinity & wait
"""
UNSHARE = (
    *("unshare", "--mount", "--propagation", "private", "--net", "--uts"),
    *("--pid", "--fork", "--kill-child", "--mount-proc"),
)


@dataclass
class Nested(Program):
    """A program that another one (unshare, nsenter) has forked into namespaces without passing signals on."""

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self.nested, number)
        if self.process is not None:
            # It stops when its child is stopped, and does not go on with it: nobody would collect the child.
            self.process.send_signal(signal.SIGCONT)

    @property
    def nested(self) -> int:
        """The number of the program's own process, as this machine counts."""
        assert self.process is not None
        starter = self.process.pid
        children = Path(f"/proc/{starter}/task/{starter}/children").read_text().split()
        return int(children[0]) if children else starter


class Namespaces:
    """Of one node. `holder` is the program that they live and die with."""

    def __init__(self, site: Site, name: str) -> None:
        folder = site.directory / "nodes" / name
        (folder / "log").mkdir(parents=True, exist_ok=True)
        for each in STATE:
            (folder / each).mkdir(exist_ok=True)
            Path("/var/lib", each).mkdir(exist_ok=True)
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        first = ["bash", "-c", FIRST_PROCESS, name, name, str(folder), *STATE]
        self.folder = folder
        self.holder = Nested(name, [*UNSHARE, *first], site.log(name), ready.exists)

    @property
    def process(self) -> int:
        """The first process, by which others find the namespaces."""
        return self.holder.nested

    def command(self, command: Sequence[str]) -> list[str]:
        """What runs a command inside."""
        return inside(self.process, command)


def inside(process: int, command: Sequence[str]) -> list[str]:
    """What runs a command in the namespaces of a node, by its first process."""
    target = ("--target", str(process), "--mount", "--net", "--uts", "--pid")
    return ["nsenter", *target, "--", *command]
