"""What vLLM is told when it loads the plugin; needs no vLLM."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import uneven_llama


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Architecture -> class, of a vLLM that only takes notes; the table of hooks is under "hooks"."""
    notes: dict[str, Any] = {"hooks": {}}
    vllm, config = ModuleType("vllm"), ModuleType("vllm.model_executor.models.config")
    vllm.ModelRegistry = type("ModelRegistry", (), {"register_model": staticmethod(notes.__setitem__)})
    config.MODELS_CONFIG_MAP = notes["hooks"]
    hook = ModuleType("uneven_llama.hook")  # the real one stands on vLLM's own
    hook.UnevenLlamaConfig = "the hook"
    packages = [ModuleType("vllm.model_executor"), ModuleType("vllm.model_executor.models")]
    for module in (vllm, *packages, config, hook):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return notes


def test_class_and_hook_have_the_same_name(registered: dict[str, Any]) -> None:
    uneven_llama.register()
    assert registered == {
        "UnevenLlamaForCausalLM": "uneven_llama.model:UnevenLlamaForCausalLM",
        "hooks": {"UnevenLlamaForCausalLM": "the hook"},
    }
    assert "uneven_llama.model" not in sys.modules
