"""What vLLM pull request 7438 proposed as `vllm.plugins.model_plugin`: how a plugin names its architecture.

Offered under that name where vLLM has no such module (model_architectures.py). A plugin's classes follow the
interface of the vLLM that runs them; the proposal's constructor and forward are those of 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


class ModelArchitectureBase(torch.nn.Module):  # type: ignore[misc]  # torch is the engine's
    """The proposal's base class; a plugin may inherit from it or from any model of vLLM's."""


@dataclass
class ModelPlugin:
    architecture_name: str
    """The name in config.json's `architectures`."""
    implementation_cls: type[torch.nn.Module] | str
    """The class, or "module:Class" to import it when it is needed."""
