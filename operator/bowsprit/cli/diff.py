"""`bowsprit diff`: what one revision of a model has that another has not."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from bowsprit.cli.history import History
from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.cli.writing import yaml_text
from bowsprit.render.history import KeptRevision, UnknownRevision, revision_called, revision_document

_STYLES = {"---": "bold", "+++": "bold", "@": "cyan", "-": "red", "+": "green"}
"""By how a line begins; the first that fits."""


def pair(history: History, first: str, second: str) -> tuple[KeptRevision, KeptRevision]:
    """The two revisions that are meant. Raises BadInput that tells of both when both are unknown."""
    found: list[KeptRevision] = []
    problems: list[Problem] = []
    for called in (first, second):
        try:
            found.append(revision_called(called, history.revisions))
        except UnknownRevision as error:
            problems.append(Problem(Place("the live cluster"), "", f"{history.key}: {error}"))
    if problems:
        raise BadInput(dict.fromkeys(problems))
    return found[0], found[1]


def diff_parts(history: History, first: KeptRevision, second: KeptRevision) -> Iterator[RenderableType]:
    """Lines of a unified diff; none when there is no difference."""
    for line in difflib.unified_diff(
        _lines(history, first),
        _lines(history, second),
        fromfile=_title(history, first),
        tofile=_title(history, second),
        lineterm="",
    ):
        style = next((style for begin, style in _STYLES.items() if line.startswith(begin)), "")
        yield Text(line, style)


def _lines(history: History, revision: KeptRevision) -> list[str]:
    return yaml_text([revision_document(revision, history.layouts(revision))]).splitlines()


def _title(history: History, revision: KeptRevision) -> str:
    return f"{history.key} revision {revision}"
