"""Run benches by name, or all of them: python -m bench [NAME …] [--json FILE] [--record].

A bench is a module of this package with `measure() -> list[Figure]`. Figures are printed as they come, and at
the end as a Markdown table.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
import time
from dataclasses import asdict
from pathlib import Path

import bench
from bench import record
from bench.figure import Figure


def names() -> list[str]:
    """Modules of this package that can be measured."""
    modules = [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name[0] != "_"]
    return sorted(name for name in modules if hasattr(_load(name), "measure"))


def _load(name: str):
    return importlib.import_module(f"bench.{name}")


def main() -> int:
    known = names()
    arguments = _arguments(known)
    load = os.getloadavg()[0]
    results: dict[str, list[Figure]] = {}
    for name in arguments.names or known:
        print(f"== {name}", flush=True)
        start = time.monotonic()
        results[name] = _load(name).measure()
        for figure in results[name]:
            print(f"  {figure}", flush=True)
        print(f"  ({time.monotonic() - start:.0f} s)", flush=True)
    table = record.table(results, load)
    print(f"\n{table}")
    if arguments.json:
        document = {name: [asdict(figure) for figure in figures] for name, figures in results.items()}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    if arguments.record:
        record.record(table)
    missed = [figure for figures in results.values() for figure in figures if figure.met is False]
    return 1 if missed else 0


def _arguments(known: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure, each figure beside its reference."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"benches to run: {', '.join(known)}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--record", action="store_true", help="put the table of all in docs/benchmarks.md")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(known)):
        parser.error(f"no bench named {', '.join(unknown)}; there are {', '.join(known)}")
    if arguments.record and arguments.names:
        parser.error("--record is for a run of all benches; leave the names out")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
