"""The outputs in hand-written pages: what each `console offline` block prints, from running it.

So a page shows what this version prints, and `make check-generated` says where it no longer does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from docs.pages import ROOT, Block, blocks, pages


def generate() -> dict[str, str]:
    """The pages, with the outputs of now."""
    return {str(page.relative_to(ROOT)): _refreshed(page) for page in pages()}


def _refreshed(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    for block in reversed(list(blocks(page))):
        if "offline" in block.words:
            text = text[: block.start] + _session(block) + text[block.start + len(block.text) :]
    return text


def _session(block: Block) -> str:
    return "\n".join(part for step in block.steps for part in _step(step.command)) + "\n"


def _step(command: str) -> list[str]:
    """The command and what it prints on both streams. 3, not all models placed, may be a page's point."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "KUBECONFIG": os.devnull}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode not in (0, 3):
        raise ValueError(f"{command}: exit code {done.returncode}\n{done.stdout}")
    lines = (line.rstrip() for line in done.stdout.rstrip("\n").splitlines())
    return [f"$ {command}", *lines]
