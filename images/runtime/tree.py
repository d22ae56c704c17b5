"""Lays out what the runtime's image holds in /bowsprit, without building an image:

    python images/runtime/tree.py FOLDER [--busybox FILE]

`python3 FOLDER install` and the other commands then run from it, on any Python from 3.9 on.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

SOURCE = Path(__file__).parent / "src"


def lay_out(folder: Path, busybox: Path | None = None) -> None:
    """Writes the tree into `folder`, which must not exist; with `bin/busybox` when a static one is named."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    if busybox:
        (folder / "bin").mkdir()
        shutil.copy(busybox, folder / "bin" / "busybox")


def main() -> None:
    parser = argparse.ArgumentParser(description="Lay out the runtime image's /bowsprit in a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--busybox", type=Path, help="a static busybox, for init containers of plugin images")
    arguments = parser.parse_args()
    lay_out(arguments.folder, arguments.busybox)


if __name__ == "__main__":
    main()
