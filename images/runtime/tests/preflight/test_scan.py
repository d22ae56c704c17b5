"""Dead imports of vLLM are seen in source, with their new home."""

from __future__ import annotations

from pathlib import Path

import pytest

from bowsprit_runtime.preflight.scan import dead_imports

ENGINE = {
    "__init__.py": "from vllm.engine import LLM\n__version__ = '1'\n",
    "engine.py": "class LLM: ...\n",
    "layers/attention.py": "class Attention: ...\nBACKENDS: dict = {}\n",
    "layers/__init__.py": "",
    "models/pixtral.py": "class Attention: ...\n",
    "lazy.py": "def __getattr__(name): ...\n",
    "star.py": "from vllm.engine import *\n",
}


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    for path, text in ENGINE.items():
        file = tmp_path / "vllm" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "vllm"


def found(vllm: Path, source: str) -> list[str]:
    folder = vllm.parent / "plugin"
    folder.mkdir()
    (folder / "model.py").write_text(source)
    return [dead.told(folder) for dead in dead_imports(folder, vllm)]


ALIVE = [
    "import vllm",
    "import vllm.layers.attention",
    "from vllm import LLM, __version__",
    "from vllm import layers",
    "from vllm.layers.attention import Attention, BACKENDS",
    "from vllm.lazy import anything",
    "from vllm.star import anything",
    "import vllm_plugin.nowhere",
    "from . import nowhere",
    "try:\n    from vllm.nowhere import A\nexcept ImportError:\n    A = None",
    "try:\n    import vllm.layers\nexcept ImportError:\n    from vllm.old import A",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vllm.nowhere import A",
    "def f(:",
]


@pytest.mark.parametrize("source", ALIVE)
def test_what_is_there_or_guarded_is_not_told(source: str, vllm: Path) -> None:
    assert found(vllm, source) == []


DEAD = {
    "a module that has moved": (
        "from vllm.attention import Attention",
        (
            "model.py:1 imports Attention from vllm.attention, which this vLLM does not have; "
            "it is in vllm.layers.attention or vllm.models.pixtral now"
        ),
    ),
    "a module": (
        "import vllm.attention",
        (
            "model.py:1 imports vllm.attention, which this vLLM does not have; "
            "it is in vllm.layers.attention now"
        ),
    ),
    "a name that is gone": (
        "from vllm.engine import LLMEngine",
        "model.py:1 imports LLMEngine from vllm.engine, which this vLLM does not have",
    ),
    "a late import": (
        "class A:\n    def f(self):\n        from vllm.engine import LLMEngine",
        "model.py:3 imports LLMEngine from vllm.engine, which this vLLM does not have",
    ),
    "an import under another guard": (
        "try:\n    from vllm.nowhere import A\nfinally:\n    pass",
        "model.py:2 imports A from vllm.nowhere, which this vLLM does not have",
    ),
}


@pytest.mark.parametrize("case", DEAD)
def test_what_is_dead_is_told_with_its_home(case: str, vllm: Path) -> None:
    source, words = DEAD[case]
    assert found(vllm, source) == [words]


def test_a_module_that_is_supplied_is_there(vllm: Path) -> None:
    folder = vllm.parent / "plugin"
    folder.mkdir()
    (folder / "model.py").write_text("from vllm.plugins.model_plugin import ModelPlugin")
    assert dead_imports(folder, vllm, {"vllm.plugins.model_plugin"}) == []
