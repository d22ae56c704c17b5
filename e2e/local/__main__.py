"""The local cluster from a shell.

python -m e2e.local build    everything that it is made of, into the caches
python -m e2e.local up       start it, and leave it up; prints what to do with it
                             one that is up already gets the images and the operator of this work tree
python -m e2e.local down     stop it; its logs stay until the next start
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from e2e.cluster import background
from e2e.cluster.build import BuildFailed, ensure_programs
from e2e.cluster.control_plane import KubectlFailed
from e2e.cluster.helm import HelmFailed
from e2e.cluster.processes import StartFailed
from e2e.cluster.waiting import Timeout
from e2e.images.buildah import ImageFailed, cache_directory
from e2e.local.cluster import LocalCluster, bring_up_to_date, directory, empty_directory
from e2e.local.materials import ensure_materials

PROBLEMS = (
    BuildFailed,
    HelmFailed,
    ImageFailed,
    KubectlFailed,
    StartFailed,
    Timeout,
    background.NotPossible,
)


def main() -> int:
    """The exit status is 0 when it did what it was asked."""
    parser = argparse.ArgumentParser(prog="python -m e2e.local", description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=sorted(_ACTIONS))
    parser.add_argument("--dir", type=Path, help=argparse.SUPPRESS)  # given to `serve` by `up`
    try:
        _ACTIONS[parser.parse_args().action]()
    except PROBLEMS as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _build() -> None:
    began = time.monotonic()
    ensure_materials()
    print(f"All is in {cache_directory().parent}, after {time.monotonic() - began:.0f} s.")


def _up() -> None:
    materials = ensure_materials()  # here, where a person sees the progress, and not in the background
    if background.is_kept(directory()):
        bring_up_to_date(materials)
    else:
        background.up(empty_directory(), "e2e.local")
    kubectl = Path(ensure_programs().binary("kubectl"))
    print(
        "The cluster is up. In this shell:\n\n"
        f"  export KUBECONFIG={directory() / 'kubeconfig'}\n"
        f"  export PATH={kubectl.parent}:{Path(sys.executable).parent}:$PATH\n\n"
        "  make e2e ARGS='-k serving'    runs tests against it\n"
        "  make e2e-stop                 when you are done"
    )


def _down() -> None:
    background.down(directory())
    print(f"Stopped. Its logs are in {directory() / 'logs'}.")


def _serve() -> None:
    background.serve(directory(), lambda folder: LocalCluster(ensure_materials(), folder))


_ACTIONS = {"build": _build, "up": _up, "down": _down, "serve": _serve}

if __name__ == "__main__":
    sys.exit(main())
