"""What goes to the terminal: colours for a person, plain and unwrapped text for everything else."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 1000
"""Columns of a pipe: wide enough that no line is ever broken."""


def show(parts: Iterable[RenderableType]) -> None:
    """Print to stdout. rich itself sees NO_COLOR, TERM=dumb and whether this is a terminal."""
    if sys.stdout.isatty():
        console = Console(markup=False, highlight=False, emoji=False)
        for part in parts:
            console.print(part)
        return
    for part in parts:
        typer.echo(plain(part), nl=False)


def plain(part: RenderableType) -> str:
    """The text alone, without colours and trailing blanks."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=PLAIN_WIDTH,
        color_system=None,
        force_terminal=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
    console.print(part, soft_wrap=isinstance(part, str | Text))
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """Columns under plain headings, as kubectl prints them."""
    result = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", show_edge=False)
    for column in columns:
        result.add_column(column, overflow="fold")
    for row in rows:
        result.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return result


def note(message: str) -> None:
    """A remark that is not part of the answer."""
    typer.echo(f"note: {message}", err=True)
