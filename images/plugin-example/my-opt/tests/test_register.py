"""What vLLM is told when it loads the plugin; needs no vLLM."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

import my_opt


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Architecture -> class, of a vLLM that only takes notes."""
    notes: dict[str, str] = {}
    vllm = ModuleType("vllm")
    vllm.ModelRegistry = type("ModelRegistry", (), {"register_model": staticmethod(notes.__setitem__)})
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    return notes


def test_the_class_is_named_and_not_imported(registered: dict[str, str]) -> None:
    my_opt.register()
    assert registered == {"MyOptForCausalLM": "my_opt.model:MyOptForCausalLM"}
    assert "my_opt.model" not in sys.modules


def test_vllm_may_call_it_again(registered: dict[str, str]) -> None:
    my_opt.register()
    my_opt.register()
    assert list(registered) == ["MyOptForCausalLM"]


def test_the_named_class_is_where_its_name_says() -> None:
    source = Path(my_opt.__file__).with_name("model.py").read_text(encoding="utf-8")
    assert "class MyOptForCausalLM(" in source
