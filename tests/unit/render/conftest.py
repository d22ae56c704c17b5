"""Golden manifests: what is rendered today, for a reviewer to read.

`pytest tests/unit/render --update-golden` writes them anew. A diff in them is a change to pods that run at
users' sites: RENDER_VERSION exists so that there never is one for a revision that is stored already.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

# No timed assertions: a slow machine is not a wrong answer.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

GOLDEN = Path(__file__).with_name("golden")
RECORDED = Path(__file__).with_name("recorded")
"""By render version; a file is written once."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")
    parser.addoption("--record-revisions", action="store_true", help="write the recorded revisions that lack")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, list[dict[str, Any]]], None]:
    """Holds manifests against golden/<name>.yaml."""
    update = request.config.getoption("--update-golden", default=False)

    def check(name: str, manifests: list[dict[str, Any]]) -> None:
        file = GOLDEN / f"{name}.yaml"
        if update:
            GOLDEN.mkdir(exist_ok=True)
            file.write_text(_dumped(manifests))
        assert manifests == list(yaml.safe_load_all(file.read_text()))

    return check


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Callable[[Path, list[dict[str, Any]]], None]:
    """Writes documents to a file of RECORDED if that is asked for and the file is not there."""
    wanted = request.config.getoption("--record-revisions", default=False)

    def write(file: Path, documents: list[dict[str, Any]]) -> None:
        if wanted and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_dumped(documents))

    return write


def _dumped(documents: list[dict[str, Any]]) -> str:
    return str(yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=110))
