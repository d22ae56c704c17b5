"""Figures as a Markdown table, with the machine they were taken on, and their place in docs/benchmarks.md."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.figure import Figure

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->\n"
HEAD = "| bench | figure | target | measured | in the same run |\n| --- | --- | --- | --- | --- |\n"


def table(results: Mapping[str, Iterable[Figure]], load: float) -> str:
    """The table. `load`: the load average when the run began, which says whether the machine was quiet."""
    rows = [_row(name, figure) for name, figures in results.items() for figure in figures]
    return f"{_machine(load)}\n\n{HEAD}{''.join(rows)}"


def record(text: str, page: Path = PAGE) -> None:
    """Puts a table in the page, in the place of the last one."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{page} lacks {BEGIN.strip()} … {END.strip()}")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def _row(bench: str, figure: Figure) -> str:
    verdict = "" if figure.met is None else ", met" if figure.met else ", **missed**"
    measured = f"{figure.value:,.4g} {figure.unit}"
    cells = (bench, figure.what, f"{figure.target}{verdict}", measured, figure.reference)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"


def _machine(load: float) -> str:
    """Date, processor, memory and software in a line."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"{today}: {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}; "
        f"load average {load:.1f} at the start."
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
