"""Whose doing a change of the environment is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bowsprit_runtime.preflight.environment import changes

WAYS = {
    "by name": "import os\nos.environ['MY_VARIABLE'] = '1'\n",
    "by setdefault": "import os\nos.environ.setdefault('MY_VARIABLE', '1')\n",
    "by update": "import os\nos.environ.update(MY_VARIABLE='1')\n",
    "by putenv of bytes": "import os\nos.environb[b'MY_VARIABLE'] = b'1'\n",
    "by taking it away": "import os\nos.environ.pop('MY_OTHER')\n",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Runs a source as if it stood in a folder."""
    monkeypatch.delenv("MY_VARIABLE", raising=False)
    monkeypatch.setenv("MY_OTHER", "1")
    return lambda folder, source: exec(compile(source, str(tmp_path / folder / "module.py"), "exec"), {})


@pytest.fixture(autouse=True)
def _restored() -> object:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_plugin_changes_is_heard(way: str, run: Callable[[str, str], None], tmp_path: Path) -> None:
    with changes(tmp_path / "vllm") as changed:
        run("my_plugin", WAYS[way])
    assert len(changed) == 1


@pytest.mark.parametrize("way", WAYS)
def test_what_the_engine_changes_meanwhile_is_its_own(
    way: str, run: Callable[[str, str], None], tmp_path: Path
) -> None:
    with changes(tmp_path / "vllm") as changed:
        run("vllm/model_executor", WAYS[way])
    assert changed == set()
    assert os.environ.get("MY_VARIABLE", "") == "1" or "MY_OTHER" not in os.environ


def test_what_is_as_before_is_no_change(run: Callable[[str, str], None], tmp_path: Path) -> None:
    with changes(tmp_path / "vllm") as changed:
        run("my_plugin", "import os\nos.environ['MY_OTHER'] = '2'\nos.environ['MY_OTHER'] = '1'\n")
    assert changed == set()
