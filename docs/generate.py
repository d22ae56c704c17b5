"""The one entry to all generated files: `make generate` writes them, `make check-generated` compares.

A generated file is committed, so that a reader and a reviewer see it, and is never edited by hand.
A generator is a function without arguments that returns texts by path, relative to the repository's root;
it joins GENERATORS.
"""

import argparse
import difflib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from docs.generators import api, chart, cli, outputs, preflight, rbac

ROOT = Path(__file__).resolve().parent.parent

Generator = Callable[[], Mapping[str, str]]

GENERATORS: tuple[Generator, ...] = (
    api.generate,
    chart.generate,
    cli.generate,
    preflight.generate,
    rbac.generate,
    outputs.generate,
)


def collect(generators: Iterable[Generator]) -> dict[str, str]:
    """Return every generated text by its path; two generators may not claim one path."""
    texts: dict[str, str] = {}
    for generator in generators:
        for path, text in generator().items():
            if path in texts:
                raise ValueError(f"{path} has two generators; {generator.__module__} is the second")
            texts[path] = text.rstrip("\n") + "\n"
    return texts


def stale(root: Path, texts: Mapping[str, str]) -> list[str]:
    """Return the paths whose file is missing or differs."""
    return sorted(path for path, text in texts.items() if _read(root / path) != text)


def write(root: Path, texts: Mapping[str, str], paths: Iterable[str]) -> None:
    """Write the named texts under root."""
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(texts[path], encoding="utf-8")
        print(f"wrote {path}")


def main(argv: list[str] | None = None) -> int:
    """Write the stale files; with --check name them, and the cure, and fail."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description="Write the generated files.")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when a file is stale")
    check = parser.parse_args(argv).check
    texts = collect(GENERATORS)
    paths = stale(ROOT, texts)
    if not check:
        write(ROOT, texts, paths)
    for path in paths if check else ():
        print(f"stale: {path}\n{_diff(_read(ROOT / path) or '', texts[path], path)}")
    if check and paths:
        print(
            f"{len(paths)} of {len(texts)} generated files are stale. Cure: make generate, then commit them."
        )
        return 1
    print(f"{len(texts)} generated files are current")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _diff(old: str, new: str, path: str, limit: int = 20) -> str:
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), path, "generated", n=1, lineterm="")
    lines = list(diff)
    more = [f"… and {len(lines) - limit} more lines"] if len(lines) > limit else []
    return "\n".join(lines[:limit] + more)


if __name__ == "__main__":
    sys.exit(main())
