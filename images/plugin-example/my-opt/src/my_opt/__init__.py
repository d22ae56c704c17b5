"""An out-of-tree architecture for vLLM that anyone recognises by its output: the plugin to copy."""

from __future__ import annotations

ARCHITECTURE = "MyOptForCausalLM"


def register() -> None:
    """Entry point `my_opt`: vLLM calls it once in each of its processes, on every rank.

    The class is named, not imported: vLLM loads it when a model asks for it, and CUDA is not touched before.
    """
    from vllm import ModelRegistry

    ModelRegistry.register_model(ARCHITECTURE, "my_opt.model:MyOptForCausalLM")
