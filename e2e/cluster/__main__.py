"""The control plane from a shell.

python -m e2e.cluster build             build the programs (minutes the first time, then nothing)
python -m e2e.cluster build flux        build Flux, and Argo CD's comparison
python -m e2e.cluster up --dir DIR      start a control plane that stays; prints the KUBECONFIG line
python -m e2e.cluster status --dir DIR  what runs, and the memory that it takes
python -m e2e.cluster down --dir DIR    stop it; data and logs stay in DIR
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from e2e.cluster import background
from e2e.cluster.build import BuildFailed, cache_directory, ensure_programs
from e2e.cluster.control_plane import KubectlFailed
from e2e.cluster.processes import StartFailed
from e2e.cluster.programs import ARGO_CD, CONTROL_PLANE, FLUX
from e2e.cluster.waiting import Timeout

# What a person can do something about; its message says what, so a traceback would only hide it.
PROBLEMS = (BuildFailed, StartFailed, KubectlFailed, Timeout, background.NotPossible)

BUILDS = {"cluster": CONTROL_PLANE, "flux": (*FLUX, ARGO_CD)}


def main() -> int:
    """Runs one command; the exit status is 0 when it did what it was asked."""
    arguments = _parser().parse_args()
    try:
        return int(arguments.run(arguments))
    except PROBLEMS as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.cluster", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    build = commands.add_parser("build", help="build the programs into the cache")
    build.add_argument("what", nargs="?", choices=BUILDS, default="cluster", help="which programs")
    build.set_defaults(run=_build)
    for name, run, text in (
        ("up", _up, "start a control plane that stays"),
        ("down", _down, "stop it; data and logs stay"),
        ("status", _status, "what runs, and the memory that it takes"),
        ("serve", _serve, "what `up` runs in the background"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--dir", type=Path, required=True, help="where its data and logs are")
        command.set_defaults(run=run)
    return parser


def _build(arguments: argparse.Namespace) -> int:
    ensure_programs(BUILDS[arguments.what])
    print(f"The programs are in {cache_directory()}.")
    return 0


def _up(arguments: argparse.Namespace) -> int:
    ensure_programs()  # here, where a person sees the progress, and not in the background
    print(f"export KUBECONFIG={background.up(arguments.dir)}")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    background.down(arguments.dir)
    print(f"Stopped. Data and logs are in {arguments.dir}; `up` continues with them.")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    for line in background.status(arguments.dir):
        print(line)
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    background.serve(arguments.dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
