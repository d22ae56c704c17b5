"""Every code block of the README and the docs does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from docs.pages import ROOT, Block, blocks, pages
from tests.docs.conftest import Demo, Shell

ALL = [block for page in pages() for block in blocks(page)]
MODES = {"offline", "demo", "chart", "shown"}
ELSEWHERE = {"chart", "flux", "argo"}
"""YAML that is not for the demo's API server."""
TUTORIAL = ROOT / "docs/tutorial/first-plan.md"


def _name(value: Block | Path) -> str:
    return value.name if isinstance(value, Block) else str(value.relative_to(ROOT))


def _of(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language]


def _manifests() -> list[Block]:
    return [block for block in _of("yaml") if not ELSEWHERE & set(block.words)]


def _played(word: str) -> list[Path]:
    """Pages with commands for the cluster of that name.

    The tutorial is first, because it goes on where the demo's story ends: so this file comes, by its name,
    before those that change the cluster.
    """
    found = {block.page for block in ALL if block.language == "console" and word in block.words}
    return sorted(found, key=lambda page: (page != TUTORIAL, page))


@pytest.mark.parametrize("block", _of("console"), ids=_name)
def test_each_console_block_says_how_it_is_tested(block: Block) -> None:
    """Outputs of the offline ones are generated, so test_generate in tests/frame holds them."""
    assert len(MODES & set(block.words)) == 1, f"{block.name} needs one of {sorted(MODES)}"
    assert block.steps, f"{block.name} holds no line that begins with `$ `"


def test_no_block_hides_commands_under_another_language() -> None:
    assert {block.language for block in ALL} <= {"console", "yaml", "text"}


def test_make_targets_on_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(page.read_text() for page in pages())
    named = set(re.findall(r"(?:`|\$ )make ([a-z0-9-]+)", text))
    assert {"demo", "demo-stop", "test", "venv"} <= named <= targets


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.integration
@pytest.mark.parametrize("block", _manifests(), ids=_name)
def test_manifests_on_the_pages_are_taken_by_the_api_server(block: Block, demo: Demo, tmp_path: Path) -> None:
    if "products" in yaml.safe_load(block.text):
        command = f"bowsprit map --products {_written(block, tmp_path)}"
    else:
        command = f"kubectl apply --dry-run=server -f {_written(block, tmp_path)}"
    done = demo.shell(command)
    assert done.returncode == 0, done.stdout


@pytest.mark.integration
@pytest.mark.parametrize("page", _played("demo"), ids=_name)
def test_commands_on_the_page_print_what_it_shows(page: Path, demo: Demo, tmp_path: Path) -> None:
    if page != TUTORIAL:
        demo.reset()
    _play(page, "demo", demo.shell, tmp_path)


@pytest.mark.integration
@pytest.mark.parametrize("page", _played("chart"), ids=_name)
def test_commands_with_helm_print_what_the_page_shows(page: Path, bare: Shell, tmp_path: Path) -> None:
    _play(page, "chart", bare, tmp_path)


@pytest.mark.integration
@pytest.mark.parametrize("folder", ["twelve-gpus", "quickstart"])
def test_examples_are_taken_by_the_api_server(folder: str, demo: Demo) -> None:
    done = demo.shell(f"kubectl apply --dry-run=server -f examples/{folder}")
    assert done.returncode == 0, done.stdout


def test_three_dots_on_a_page_stand_for_anything_and_the_rest_for_itself() -> None:
    pattern = _pattern("GPUS ... free (.)\n...\nend")
    assert pattern.fullmatch("GPUS 12, 0 free (.)\nmore\nlines\nend")
    assert not pattern.fullmatch("GPUS 12, 0 free (x)\nmore\nend")


def test_maps_with_the_same_rows_on_other_nodes_are_alike() -> None:
    assert _lines("gpu-a   A A\ngpu-b   B .\nsum") == _lines("gpu-a   B .\ngpu-b   A A\nsum")
    assert _lines("gpu-a   A A\ngpu-b   B .\nsum") != _lines("gpu-a   A B\ngpu-b   A .\nsum")


def test_a_console_block_is_read_as_commands_with_their_outputs() -> None:
    block = Block(ROOT / "README.md", 1, "console", (), "$ one \\\n  more\nout\n\nput\n$ two\n", 0)
    assert [(step.command, step.output) for step in block.steps] == [
        ("one \\\n  more", "out\n\nput"),
        ("two", ""),
    ]


def test_offline_commands_need_no_cluster() -> None:
    assert any("offline" in block.words for block in ALL)
    for block in ALL:
        if "offline" in block.words:
            assert all("kubectl" not in step.command for step in block.steps), block.name


def _play(page: Path, word: str, shell: Shell, directory: Path) -> None:
    """Runs the page's commands for that cluster, and compares what they print."""
    for name in ("charts", "examples"):
        (directory / name).symlink_to(ROOT / name)
    for block in blocks(page):
        if block.file:
            _written(block, directory)
    for step in (step for block in blocks(page) if word in block.words for step in block.steps):
        done = shell(step.command, directory)
        shown = _lines(done.stdout)
        assert done.returncode == 0, f"$ {step.command}\n{shown}"
        assert not step.output or _pattern(step.output).fullmatch(shown), (
            f"$ {step.command}\nThe page shows:\n{step.output}\nIt prints:\n{shown}"
        )


def _written(block: Block, directory: Path) -> Path:
    path = directory / (block.file or "manifest.yaml")
    path.write_text(block.text)
    return path


def _lines(text: str) -> str:
    """Without trailing blanks, and with the rows of a map in one order whichever node has which."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    rows = iter(sorted(_without_node(line) for line in lines if line.startswith("gpu-")))
    return "\n".join(next(rows) if line.startswith("gpu-") else line for line in lines)


def _without_node(row: str) -> str:
    return re.sub(r"^gpu-[a-z]", "gpu", row)


def _pattern(shown: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in _lines(shown).split("...")]
    return re.compile(".*".join(parts), re.DOTALL)
