"""Figures become a table, and the table takes the place of the last one in the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.figure import Figure
from bench.record import PAGE, record, table

FIGURES = {
    "idle": [Figure("writes", 0, "in all", "none", True), Figure("a | b", 1234.5, "ms", "", None, "2 s")]
}


def test_a_row_for_each_figure_with_target_and_verdict() -> None:
    rows = table(FIGURES, load=0.5).splitlines()[-2:]
    assert rows == ["| idle | writes | none, met | 0 in all |  |", "| idle | a / b |  | 1,234 ms | 2 s |"]


def test_a_missed_target_stands_out() -> None:
    assert "**missed**" in table({"idle": [Figure("writes", 3, "", "none", False)]}, load=0.5)


def test_the_page_says_how_busy_the_machine_was() -> None:
    assert "load average 0.5 at the start" in table(FIGURES, load=0.5)


def test_only_the_place_of_the_last_table_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n")
    record("new", page)
    assert page.read_text() == "before\n<!-- figures -->\n\nnew\n<!-- /figures -->\nafter\n"


def test_a_page_without_the_place_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n")
    with pytest.raises(ValueError, match="lacks"):
        record("new", page)
    assert page.read_text() == "before\n"


def test_the_projects_page_has_the_place() -> None:
    assert "<!-- figures -->\n" in PAGE.read_text()
    assert "<!-- /figures -->\n" in PAGE.read_text()
