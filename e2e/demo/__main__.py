"""The demo from a shell.

python -m e2e.demo           the whole story; nothing is left running
python -m e2e.demo --keep    the cluster and the operator stay up for you to try things
python -m e2e.demo stop      ends what --keep left
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import background
from e2e.cluster.build import BuildFailed, cache_directory, ensure_programs
from e2e.cluster.control_plane import KubectlFailed
from e2e.cluster.processes import StartFailed, tail
from e2e.cluster.waiting import Timeout
from e2e.demo.cluster import OperatedCluster, operator_log
from e2e.demo.screen import Screen
from e2e.demo.story import NotAsPromised, tell

# What a person can do something about; its message says what, so a traceback would only hide it.
PROBLEMS = (BuildFailed, StartFailed, KubectlFailed, Timeout, NotAsPromised, background.NotPossible)
STARTING = "Starting the control plane and the operator ..."
INTRODUCTION = """\
Bowsprit on a Kubernetes control plane that runs on this machine: etcd, API server, controller manager,
scheduler, LeaderWorkerSet and the operator are real. The three nodes with four A100-80GB each are not: KWOK
plays their kubelets, so no container runs there and no model is loaded. Ready means: placed and bound.
"""


def main() -> int:
    """The exit status is 0 when everything came as promised."""
    parser = argparse.ArgumentParser(prog="python -m e2e.demo", description=__doc__.splitlines()[0])
    parser.add_argument("action", nargs="?", choices=("play", "stop", "serve"), default="play")
    parser.add_argument("--keep", action="store_true", help="leave the cluster and the operator up")
    parser.add_argument(
        "--dir", type=Path, default=cache_directory().parent / "demo", help="of a kept cluster"
    )
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _ACTIONS[arguments.action](arguments)
    except PROBLEMS as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; everything is stopped.", file=sys.stderr)
        return 130


def _play(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    programs = ensure_programs()
    kubectl = Path(programs.binary("kubectl"))
    screen = Screen()
    screen.say(INTRODUCTION)
    with _kept(arguments.dir, kubectl, screen) if arguments.keep else _passing(screen) as kubeconfig:
        screen.say(f"The control plane and the operator are up after {time.monotonic() - began:.0f} s.")
        try:
            asyncio.run(tell(kubeconfig, kubectl, screen))
        except NotAsPromised as problem:
            raise NotAsPromised(f"{problem}\n{tail(operator_log(kubeconfig))}") from problem
        screen.say("", f"The whole took {time.monotonic() - began:.0f} s.", "")
        screen.say(*_farewell(arguments, kubeconfig, kubectl))
    return 0


@contextmanager
def _passing(screen: Screen) -> Iterator[Path]:
    """A cluster that goes with this process, however it ends. After a failure its logs stay."""
    directory = Path(tempfile.mkdtemp(prefix="bowsprit-demo-"))
    cluster = OperatedCluster(directory)
    try:
        with screen.busy(STARTING):
            cluster.start()
        try:
            yield cluster.kubeconfig
        finally:
            cluster.stop()
    except KeyboardInterrupt:
        shutil.rmtree(directory)
        raise
    shutil.rmtree(directory)


@contextmanager
def _kept(directory: Path, kubectl: Path, screen: Screen) -> Iterator[Path]:
    """A cluster that stays when all has gone well."""
    if background.is_kept(directory):
        raise background.NotPossible(
            f"A demo cluster runs in {directory} already. To use it, in any shell:\n\n"
            + "\n".join(_exports(directory / "kubeconfig", kubectl))
            + "\n\nTo stop it: make demo-stop"
        )
    shutil.rmtree(directory, ignore_errors=True)
    with screen.busy(STARTING):
        kubeconfig = background.up(directory, "e2e.demo")
    try:
        yield kubeconfig
    except BaseException:
        background.down(directory)
        raise


def _farewell(arguments: argparse.Namespace, kubeconfig: Path, kubectl: Path) -> list[str]:
    if not arguments.keep:
        return ["Nothing is left running. To try things yourself:  make demo KEEP=1"]
    return [
        "The cluster and the operator stay up. In this shell:",
        "",
        *_exports(kubeconfig, kubectl),
        "",
        "and then, for instance:",
        "",
        *(f"  {line}" for line in NEXT),
        "",
        "  make demo-stop     when you are done",
    ]


def _exports(kubeconfig: Path, kubectl: Path) -> list[str]:
    """What makes `kubectl` and `bowsprit` in a shell talk to the demo's cluster."""
    return [
        f"  export KUBECONFIG={kubeconfig}",
        f"  export PATH={kubectl.parent}:{Path(sys.executable).parent}:$PATH",
    ]


def _stop(arguments: argparse.Namespace) -> int:
    if not background.is_kept(arguments.dir):
        print("No demo cluster runs. Start one with: make demo KEEP=1")
        return 0
    background.down(arguments.dir)
    print(f"Stopped. Its logs are in {arguments.dir / 'logs'}.")
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    """What --keep leaves in the background."""
    background.serve(arguments.dir, OperatedCluster)
    return 0


_ACTIONS = {"play": _play, "stop": _stop, "serve": _serve}

NEXT = (
    "kubectl get mdep -o wide",
    "kubectl describe mdep mixtral-8x22b",
    "bowsprit map",
    "bowsprit explain mixtral-8x22b",
    "kubectl scale mdep llama-3-1-70b --replicas=2",
    "bowsprit explain llama-3-1-70b",
    """kubectl patch mdep dbrx --type=merge -p '{"spec":{"suspend":true}}'""",
    "kubectl get mdep --watch",
)
"""Commands to try: what is there, why; then a second replica that waits, and room made for it."""

if __name__ == "__main__":
    sys.exit(main())
