"""A behaviour of a plugin or a model, and what has to come out; and how to make its plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from images.runtime.tests.checkpoints import EMPTY
from images.runtime.tests.preflight.judging import CONFIG, MODEL, Made

MY_LLAMA = ("--hf-overrides", '{"architectures": ["MyLlama"]}')
GENERAL = "vllm.general_plugins"


@dataclass(frozen=True)
class Case:
    """Plugins, what is asked of the engine, and what has to come out."""

    plugins: Sequence[Made] = ()
    verdict: str = "Ok"
    faults: Sequence[tuple[str, str]] = ()
    """(reason, blame), in order."""
    says: Sequence[str] = ()
    """Pieces of the messages and warnings."""
    arguments: Sequence[str] = MY_LLAMA
    config: Any = field(default_factory=lambda: CONFIG)
    weights: Mapping[str, bytes] = field(default_factory=lambda: EMPTY)
    """Files by name."""
    request: Mapping[str, Any] = field(default_factory=dict)


def constructor(*lines: str) -> Made:
    """A model that does more than its parent when it is built."""
    body = "\n".join(f"        {line}" for line in lines)
    init = f"    def __init__(self, *, vllm_config, prefix=''):\n        super().__init__(vllm_config=vllm_config, prefix=prefix)\n{body}\n"
    return Made({"model.py": MODEL.replace("    pass\n", init)})


def package(init: str, **more: Any) -> Made:
    return Made({"__init__.py": init}, **more)


def model_class(source: str) -> Made:
    return Made({"model.py": source})


def one(reason: str, blame: str, *says: str, verdict: str = "Broken") -> dict[str, Any]:
    return {"verdict": verdict, "faults": [(reason, blame)], "says": says}


MODULE = """
import torch
class MyLlama(torch.nn.Module):
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.proj = torch.nn.Linear(8, 8)
    def embed_input_ids(self, input_ids): ...
    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None): ...
    def compute_logits(self, hidden_states): ...
    def load_weights(self, weights): return set()
"""
OF_2024 = """
import torch
class MyLlama(torch.nn.Module):
    def __init__(self, config, cache_config=None, quant_config=None):
        super().__init__()
    def forward(self, input_ids, positions, kv_caches, attn_metadata): ...
    def compute_logits(self, hidden_states, sampling_metadata): ...
    def load_weights(self, weights): ...
"""
POOLING = """
import torch
class MyLlama(torch.nn.Module):
    is_pooling_model = True
    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
    def embed_input_ids(self, input_ids): ...
    def forward(self, input_ids, positions, intermediate_tensors=None, inputs_embeds=None): ...
    def load_weights(self, weights): return set()
"""
