"""Llama for a number of GPUs that does not divide its heads: a vLLM plugin."""

from __future__ import annotations

ARCHITECTURE = "UnevenLlamaForCausalLM"


def register() -> None:
    """Entry point `uneven_llama`: vLLM calls it once in each of its processes, on every rank.

    The class is named, not imported: vLLM loads it when a model asks for it. The hook tells vLLM about the
    padding before vLLM judges whether the parallel sizes fit the model.
    """
    from vllm import ModelRegistry
    from vllm.model_executor.models.config import MODELS_CONFIG_MAP

    from uneven_llama.hook import UnevenLlamaConfig

    ModelRegistry.register_model(ARCHITECTURE, "uneven_llama.model:UnevenLlamaForCausalLM")
    MODELS_CONFIG_MAP[ARCHITECTURE] = UnevenLlamaConfig
