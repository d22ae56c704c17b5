"""The class: vLLM's own Llama, built larger, with zeros in the places that the checkpoint does not fill."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from vllm.config import VllmConfig
from vllm.distributed import get_pp_group, get_tensor_model_parallel_world_size
from vllm.model_executor.models.llama import LlamaForCausalLM

from uneven_llama.padding import Padding


class UnevenLlamaForCausalLM(LlamaForCausalLM):
    """The same outputs as LlamaForCausalLM, for every tensor-parallel size and with pipeline parallelism.

    It pads for the group that it is built in, whatever the hook was told: preflight measures it at many
    sizes.
    """

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        config = vllm_config.model_config.hf_config
        padding = Padding.of(config, get_tensor_model_parallel_world_size())
        super().__init__(vllm_config=vllm_config.with_hf_config(padding.config(config)), prefix=prefix)
        self.padding = padding
        if get_pp_group().is_last_rank:
            self.logits_processor.org_vocab_size = config.vocab_size  # cuts the padded words off the logits

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        loaded: set[str] = super().load_weights(self.padding.weights(weights))
        return loaded
