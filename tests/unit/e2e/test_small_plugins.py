"""The image of small plugins is the same one whenever it is made, and has a folder for each."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from e2e.tests.small_plugins import NO_WHEELS, PLUGINS, SmallPlugins, write


def test_the_same_plugins_are_the_same_image_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    before = SmallPlugins().tag
    monkeypatch.setattr(time, "time", lambda: 1_900_000_000.0)
    assert SmallPlugins().tag == before


def test_each_plugin_has_a_folder_with_a_wheel(tmp_path: Path) -> None:
    write(tmp_path)
    wheels = {file.parent.name for file in tmp_path.rglob("*.whl")}
    assert wheels == PLUGINS.keys()
    assert (tmp_path / "plugins" / NO_WHEELS).is_dir()
