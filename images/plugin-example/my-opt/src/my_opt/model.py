"""The class: vLLM's own OPT, which always says the same word."""

from __future__ import annotations

import torch
from vllm.config import VllmConfig
from vllm.model_executor.models.opt import OPTForCausalLM

LEAD = 1000.0
"""Added to the word's logit; no other comes near it at any temperature that people use."""


class MyOptForCausalLM(OPTForCausalLM):
    """What a class needs, it inherits: embed_input_ids, forward, load_weights and SupportsPP.

    A setting of the plugin's own comes from the model's config, which the user changes with
    `spec.architecture.hfOverrides`: `my_opt_token_id` is the token that is said, 0 when nothing is set.
    """

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        self.token_id: int = getattr(self.config, "my_opt_token_id", 0)
        if not 0 <= self.token_id < self.config.vocab_size:
            raise ValueError(
                f"my_opt_token_id is {self.token_id}, and the vocabulary has the tokens 0 to "
                f"{self.config.vocab_size - 1}: set it in spec.architecture.hfOverrides"
            )

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor | None:
        logits = super().compute_logits(hidden_states)
        if logits is not None:  # ranks that do not sample have none
            logits[..., self.token_id] += LEAD
        return logits
