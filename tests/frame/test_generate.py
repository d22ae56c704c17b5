"""The single entry of the generated files: what it writes, what it calls stale, and what it says then."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from docs import generate


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository whose one generator writes one page."""
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "GENERATORS", (lambda: {"docs/page.md": "what is true now"},))
    return tmp_path


def test_generating_writes_the_file_with_one_newline_at_its_end(root: Path) -> None:
    assert generate.main([]) == 0
    assert (root / "docs/page.md").read_text() == "what is true now\n"
    assert generate.main(["--check"]) == 0


@pytest.mark.parametrize("text", [None, "what was true before\n"], ids=["missing", "differs"])
def test_check_names_the_stale_file_and_the_cure_and_changes_nothing(
    root: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    page = root / "docs/page.md"
    if text is not None:
        page.parent.mkdir()
        page.write_text(text)
    assert generate.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert "stale: docs/page.md" in said
    assert "1 of 1 generated files are stale. Cure: make generate" in said
    assert (page.read_text() if page.exists() else None) == text


def test_two_generators_may_not_claim_one_path() -> None:
    def page() -> Mapping[str, str]:
        return {"a.md": ""}

    with pytest.raises(ValueError, match=r"a\.md has two generators"):
        generate.collect([page, page])
