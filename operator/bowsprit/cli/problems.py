"""Bad input, collected: a user who mends a file wants to hear of every fault at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import typer

EXIT_CODE = 2

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Place(NamedTuple):
    """Where something was read."""

    file: str
    document: int | None = None
    """Number within the file, from 1; None for the file as a whole."""
    item: str = ""
    """`items[3].` when the document is a List."""

    def __str__(self) -> str:
        return self.file if self.document is None else f"{self.file}, document {self.document}"


class Problem(NamedTuple):
    """One line on stderr: `file, document N: field: message`. `file:N` would be read as line N."""

    place: Place
    field: str
    message: str

    def __str__(self) -> str:
        named = f"{self.place.item}{self.field}".rstrip(".")
        return f"{self.place}: {named}: {self.message}" if named else f"{self.place}: {self.message}"


class BadInput(Exception):
    """The input cannot be used. Nothing was planned; `problems` says everything that is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def gathered(first: Callable[[], A], second: Callable[[], B], third: Callable[[], C]) -> tuple[A, B, C]:
    """Call all three; when any of them raises BadInput, raise one with the problems of all."""
    problems: list[Problem] = []
    results: list[object] = []
    for read in (first, second, third):
        try:
            results.append(read())
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(problems)
    return tuple(results)  # type: ignore[return-value]


@contextmanager
def input_errors() -> Iterator[None]:
    """Bad input: every problem on stderr, nothing on stdout, exit code 2."""
    try:
        yield
    except BadInput as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        raise typer.Exit(EXIT_CODE) from None
