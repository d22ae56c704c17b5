"""The hand-written pages and the code blocks in them, so that no block is only looked at.

The words after a block's language say what is done with it; GitHub shows none of them:

console offline     runs in the repository without a cluster; its output is written by `make generate`
console demo        runs in the cluster of `make demo KEEP=1`, each page from its top; `...` is anything,
                    and which of the nodes, which are alike, has which row of a map does not matter
console chart       runs in a cluster without Bowsprit, with Helm, in the repository, the page from its top;
                    `...` as above
console shown       is not run, because it starts or ends the demo, or needs a cluster of the reader's
yaml                must hold what its kind asks for; with file=NAME the commands of the page find it as NAME
yaml chart          values of the chart, which the page's commands use
yaml flux           for a cluster with Flux; the tests of Flux begin with it
yaml argo           for a cluster with Argo CD
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ("docs/reference", "docs/decisions")
_FENCE = re.compile(r"^```(?P<language>\w+)(?P<words>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"^\$ (.*?[^\\]\n)(.*?)(?=^\$ |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    output: str


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    text: str
    start: int
    """Where the text begins in the page."""

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name under which the page's commands find it."""
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)

    @property
    def steps(self) -> list[Step]:
        """The commands of a console block, each with the output that the page shows."""
        return [
            Step(command.rstrip("\n"), output.strip("\n")) for command, output in _STEP.findall(self.text)
        ]


def pages() -> list[Path]:
    """README.md and what is written by hand under docs/."""
    found = (path for path in sorted((ROOT / "docs").rglob("*.md")))
    return [
        ROOT / "README.md",
        *(path for path in found if not str(path.relative_to(ROOT)).startswith(GENERATED)),
    ]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        words = tuple(found["words"].split())
        yield Block(page, line, found["language"], words, found["text"], found.start("text"))
