"""The demo's page: a story that scrolls, and under it, on a terminal, one picture that follows the cluster.

Where nothing can be overwritten (a pipe, a CI log, NO_COLOR) the picture is printed when it has come to rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bowsprit.cli.screen import show

INDENT = 2


class Screen:
    def __init__(self) -> None:
        self._console = Console(highlight=False)
        terminal = self._console.is_terminal and not self._console.is_dumb_terminal
        self._moves = terminal and not self._console.no_color
        self._live: Live | None = None
        self._picture: Sequence[RenderableType] = ()
        self._began = time.monotonic()

    def say(self, *parts: RenderableType) -> None:
        """A part of the story."""
        if self._moves:
            for part in parts:
                self._console.print(part)
        else:
            show(parts)

    def act(self, title: str) -> None:
        """Begins a part of the story; the seconds beside the turning points are counted from here."""
        self.say("", Text(title, style="bold"), "")
        self._began = time.monotonic()

    def command(self, line: str) -> None:
        """What is typed at this point, for the reader to type as well."""
        self.say(_indented(Text(f"$ {line}", style="bold green")))

    def turn(self, who: str, what: str, words: str, style: str = "") -> None:
        """A turning point, with the seconds since the act began."""
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(width=5, justify="right")
        row.add_column(width=13)
        row.add_column(width=14)
        row.add_column(overflow="fold")
        row.add_row(f"{time.monotonic() - self._began:.1f}", who, Text(what, style=style), words)
        self.say(_indented(row))

    @contextmanager
    def picture(self) -> Iterator[None]:
        """While this is open, `draw` changes the picture; at the end it stands."""
        if not self._moves:
            yield
            show(["", *self._picture])
            return
        with Live(console=self._console, auto_refresh=False) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def draw(self, parts: Sequence[RenderableType]) -> None:
        """The picture as it is now."""
        self._picture = [_indented(part) for part in parts]
        if self._live is not None:
            self._live.update(Group("", *self._picture), refresh=True)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """While something is waited for that shows nothing itself."""
        if self._moves:
            with self._console.status(what):
                yield
        else:
            self.say(what)
            yield


def _indented(part: RenderableType) -> RenderableType:
    return Padding(part, (0, 0, 0, INDENT))
