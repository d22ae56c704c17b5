"""What a model family leaves unsaid in config.json, by `model_type` (and one table by architecture).

These are facts of transformers' config classes and of vLLM's model files (0.32). A family that is in no
table is read by the usual rules; an entry is only ever about what the config does not say.
"""

from __future__ import annotations

from collections.abc import Mapping

TIED_UNLESS_SAID = frozenset(
    {
        *("gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4", "gemma4_text"),
        *("gpt2", "gpt_bigcode", "opt", "bloom", "falcon", "mpt", "starcoder2", "cohere", "cohere2"),
        *("lfm2", "lfm2_moe"),
    }
)
"""The transformers class ties embedding and head by default."""

UNGATED = frozenset(
    {
        *("gpt2", "gpt_bigcode", "gpt_neox", "gptj", "codegen", "opt", "bloom", "falcon", "mpt", "phi"),
        *("starcoder2", "nemotron", "nemotron_h", "persimmon", "arcee", "biogpt"),
    }
)
"""Two MLP matrices instead of gate, up and down."""

FOUR_TIMES_WIDE = frozenset({"gpt2", "gpt_bigcode", "gptj", "codegen", "bloom", "falcon", "mpt"})
"""The MLP is four times as wide as the hidden state unless the config says otherwise."""

ADJUSTED_WIDTH = frozenset({"lfm2"})
"""The MLP is two thirds as wide as the config says, unless block_auto_adjust_ff_dim says no."""

ONE_KV_HEAD = frozenset({"falcon", "gpt_bigcode"})
"""`multi_query` means one KV head, and is the default."""

OUTPUT_GATED = frozenset({"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"})
"""The query projection makes an output gate too, unless attn_output_gate says no."""

SHARED_EXPERT = frozenset({"llama4", "llama4_text"})
"""One shared expert of the routed width that the config does not mention."""

MLP_BESIDE_EXPERTS = frozenset({"gemma4", "gemma4_text"})
"""Every MoE layer has the dense MLP as well."""

FULL_ATTENTION_PERIOD: Mapping[str, int] = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3_text": 6,
    "cohere2": 4,
    "llama4": 4,
    "llama4_text": 4,
}
"""Every how many layers attention is full when neither layer_types nor a pattern says."""

_GEMMA3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208}
SAID_BY_CLASS: Mapping[str, Mapping[str, int]] = {"gemma3": _GEMMA3, "gemma3_text": _GEMMA3}
"""Sizes that published configs leave to the class."""

LEARNED_POSITIONS = frozenset({"gpt2", "gpt_bigcode", "opt"})
"""A position table as wide as the hidden state instead of rotary ones."""

NO_POSITION_TABLE = frozenset({"bloom", "mpt", "nemotron_h"})

ENDS_ON_EVERY_STAGE = frozenset(
    {
        *("mixtral", "dbrx", "phimoe", "qwen2_moe", "qwen3_moe", "qwen3_next", "gpt_oss", "olmoe"),
        *("granitemoe", "granitemoehybrid", "granitemoeshared", "jamba", "nemotron_h"),
        *("bloom", "falcon", "gpt2", "gptj", "opt", "stablelm", "orion", "internlm2", "minicpm", "chatglm"),
        *("gemma", "gemma2", "gemma3", "gemma3_text", "gemma4", "gemma4_text", "cohere", "cohere2"),
    }
)
"""vLLM builds embedding and head on every pipeline stage: model files without a rank check around them."""

EMBEDDING_ON_EVERY_STAGE = ENDS_ON_EVERY_STAGE | {
    *("lfm2", "lfm2_moe", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
}
"""The embedding at least."""

UNSTAGEABLE = frozenset(
    {
        *("AriaForConditionalGeneration", "CohereAsrForConditionalGeneration"),
        *("DiffusionGemmaForBlockDiffusion", "FireRedASR2ForConditionalGeneration"),
        *("FunASRForConditionalGeneration", "Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"),
        *("HrmTextForCausalLM", "IQuestLoopCoderForCausalLM", "Idefics3ForConditionalGeneration"),
        *("Mamba2ForCausalLM", "NemotronH_Nano_Omni_Reasoning_V3", "NemotronH_Nano_VL_V2"),
        *("NemotronH_Omni_Reasoning_V3", "NemotronH_Super_Omni_Reasoning_V3"),
        *("NemotronParseForConditionalGeneration", "PaddleOCRVLForConditionalGeneration"),
        *("Phi4MMForCausalLM", "SmolVLMForConditionalGeneration", "WhisperForConditionalGeneration"),
        "Zamba2ForCausalLM",
    }
)
"""Architectures whose class in vLLM lacks SupportsPP: one pipeline stage only."""
