"""Control groups of the real nodes: each kubelet gets a root of its own, because one that shares the
machine's kills what it does not know, which is the other node's pods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
OURS = "bowsprit"
INHERITED = ("cpuset.cpus", "cpuset.mems")
"""What a new group of cgroup v1 has to be given before any process may join it."""


def kubelet_root(node: str) -> str:
    """What the kubelet of a node is told as its cgroupRoot."""
    return f"/{OURS}/{node}"


def create(node: str) -> None:
    """Makes the node's group in every hierarchy."""
    for hierarchy in _hierarchies():
        for group in (hierarchy / OURS, hierarchy / OURS / node):
            group.mkdir(exist_ok=True)
            for setting in INHERITED:
                if (group / setting).exists() and not (group / setting).read_text().strip():
                    (group / setting).write_text((group.parent / setting).read_text())


def processes() -> set[int]:
    """The processes in the groups of all nodes."""
    found: set[int] = set()
    for hierarchy in _hierarchies():
        for members in (hierarchy / OURS).rglob("cgroup.procs"):
            try:
                found.update(int(line) for line in members.read_text().split())
            except OSError:  # the group went in the meantime
                continue
    return found - {0}


def processes_of_pod(uid: str) -> set[int]:
    """The processes of a pod's containers, the one that holds its namespaces among them."""
    found: set[int] = set()
    for hierarchy in _hierarchies():
        for members in (hierarchy / OURS).glob(f"**/pod{uid}/**/cgroup.procs"):
            found.update(int(line) for line in members.read_text().split())
    return found - {0}


def remove() -> None:
    """Removes the groups of all nodes; no process may be left in them."""
    for hierarchy in _hierarchies():
        for group in _inside_out(hierarchy / OURS):
            group.rmdir()


def _hierarchies() -> Iterator[Path]:
    """One folder with cgroup v2; with v1 one for each controller."""
    if (MOUNT / "cgroup.controllers").exists():
        yield MOUNT
        return
    yield from (folder for folder in MOUNT.iterdir() if (folder / "cgroup.procs").exists())


def _inside_out(group: Path) -> Iterator[Path]:
    if not group.is_dir():
        return
    for child in group.iterdir():
        if child.is_dir():
            yield from _inside_out(child)
    yield group
