"""The same class as vLLM pull request 7438 proposed to package it: one object with architecture and class.

vLLM itself never took it in; Bowsprit's runtime reads the entry-point group `vllm.model_architectures` and
registers what it finds. Outside of Bowsprit use the entry point in `vllm.general_plugins`.
"""

from __future__ import annotations

from vllm.plugins.model_plugin import ModelPlugin

from my_opt import ARCHITECTURE
from my_opt.model import MyOptForCausalLM

MODEL_PLUGIN = ModelPlugin(architecture_name=ARCHITECTURE, implementation_cls=MyOptForCausalLM)
