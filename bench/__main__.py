"""Run benches by name, or all of them: python -m bench [NAME …] [--json FILE].

A bench is a module of this package with `measure() -> list[Figure]`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from dataclasses import asdict
from pathlib import Path

import bench
from bench.figure import Figure


def names() -> list[str]:
    """Modules of this package that can be measured."""
    modules = sorted(module.name for module in pkgutil.iter_modules(bench.__path__))
    return [name for name in modules if not name.startswith("_") and hasattr(_load(name), "measure")]


def _load(name: str):
    return importlib.import_module(f"bench.{name}")


def main() -> int:
    known = names()
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure, each figure beside its reference."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benches to run: {', '.join(known)}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(known)):
        parser.error(f"no bench named {', '.join(unknown)}; there are {', '.join(known)}")
    results: dict[str, list[Figure]] = {}
    for name in arguments.names or known:
        print(f"== {name}", flush=True)
        results[name] = _load(name).measure()
        for figure in results[name]:
            print(f"  {figure}", flush=True)
    if arguments.json:
        document = {name: [asdict(figure) for figure in figures] for name, figures in results.items()}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    missed = [figure for figures in results.values() for figure in figures if figure.met is False]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
