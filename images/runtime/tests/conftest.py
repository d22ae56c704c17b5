"""A small engine on the path of this Python, as an engine image would have it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from images.runtime.tests import made


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of vLLM, torch and numpy, which are names without contents."""
    folder = made.engine(tmp_path / "engine")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    return folder
