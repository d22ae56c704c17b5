"""What vLLM is told before it checks that the tensor-parallel size divides the heads.

vLLM looks up each architecture in a table of hooks while it puts its configuration together, and judges
parallel sizes right after that (VllmConfig.__post_init__ of vLLM 0.32 and 0.33). The hook knows the
tensor-parallel size, so no padded count has to be written into config.json or into hfOverrides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm.model_executor.models.config import VerifyAndUpdateConfig

from uneven_llama.padding import Padding

if TYPE_CHECKING:
    from vllm.config import VllmConfig


class UnevenLlamaConfig(VerifyAndUpdateConfig):
    @staticmethod
    def verify_and_update_config(vllm_config: VllmConfig) -> None:
        """Put the padded head counts where vLLM checks them and sizes the KV cache by them.

        Raises ValueError, which ends the start with its words, for what cannot be padded.
        """
        model_config = vllm_config.model_config
        tp = vllm_config.parallel_config.tensor_parallel_size
        padding = Padding.of(model_config.hf_config, tp)
        if not padding.is_needed:
            return
        if model_config.quantization is not None:
            raise ValueError(
                f"UnevenLlamaForCausalLM cannot pad {model_config.quantization} weights, and tensor parallel "
                f"size {tp} needs padding: choose a size that divides the model, or pipeline parallelism"
            )
        if vllm_config.lora_config is not None:
            raise ValueError(
                f"UnevenLlamaForCausalLM cannot pad LoRA adapters, and tensor parallel size {tp} needs "
                "padding: choose a size that divides the model, or leave --enable-lora out"
            )
        model_config.model_arch_config.total_num_attention_heads = padding.heads.padded_heads
        model_config.model_arch_config.total_num_kv_heads = padding.heads.kv_slots
