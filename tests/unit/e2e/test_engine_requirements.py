"""The vLLM of the end-to-end tests is pinned, and by nothing that only this machine has."""

from __future__ import annotations

import re
from pathlib import Path

from e2e.engine import install

ROOT = Path(__file__).resolve().parents[3]
ENGINE = ROOT / "e2e" / "engine"


def test_what_is_asked_for_is_pinned_at_that_version() -> None:
    pinned = (ENGINE / "requirements.txt").read_text()
    for name in ("requirements.in", "overrides.txt"):
        for line in (ENGINE / name).read_text().splitlines():
            if re.fullmatch(r"[\w-]+==[\w.]+", line):
                assert f"\n{line} \\\n" in f"\n{pinned}"


def test_each_line_is_a_pin_or_a_hash() -> None:
    line = re.compile(r"[A-Za-z0-9._-]+==\S+( ; [\w .'<>=!-]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    text = (ENGINE / "requirements.txt").read_text()
    assert [each for each in text.splitlines() if not line.fullmatch(each)] == []


def test_one_resolver_pins_and_installs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert f"uv=={re.findall(r'^UV_VERSION := (.*)$', makefile, re.MULTILINE)[0]}" == install.UV
