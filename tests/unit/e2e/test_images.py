"""An image's tag stands for all that the image is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.images.recipe import Containerfile


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / "Containerfile").write_text("FROM scratch\nCOPY src /src\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "program").write_text("1")
    (tmp_path / "notes").write_text("1")
    return tmp_path


CHANGES: dict[str, Callable[[Path], object]] = {
    "a changed file": lambda context: (context / "src" / "program").write_text("2"),
    "a file that may be executed now": lambda context: (context / "src" / "program").chmod(0o755),
    "a file under another name": lambda context: (context / "src" / "program").rename(context / "src" / "x"),
    "another recipe": lambda context: (context / "Containerfile").write_text("FROM scratch\n"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_goes_into_an_image_changes_its_tag(context: Path, change: Callable[[Path], object]) -> None:
    before = Containerfile("image", context, only=("src",)).tag
    change(context)
    assert Containerfile("image", context, only=("src",)).tag != before


@pytest.mark.parametrize("left", ["notes", "src/__pycache__/program.pyc", "src/program.egg-info/PKG-INFO"])
def test_what_does_not_go_in_leaves_the_tag(context: Path, left: str) -> None:
    before = Containerfile("image", context, only=("src",)).tag
    (context / left).parent.mkdir(exist_ok=True)
    (context / left).write_text("2")
    assert Containerfile("image", context, only=("src",)).tag == before


def test_another_base_is_another_image(context: Path) -> None:
    base = Containerfile("base", context, only=("src",))
    other = Containerfile("base", context, only=("src", "notes"))
    tags = {Containerfile("image", context, bases={"BASE": each}).tag for each in (base, other)}
    assert len(tags) == 2
