"""What vLLM asks of a model class, named method by method.

vLLM itself says only "does not support `--runner generate`"; the rules are those of its interfaces_base.py.
The kind of the model decides: pooling classes have no `compute_logits`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from bowsprit_runtime import reasons
from bowsprit_runtime.report import Fault

_OLD_INIT = ("config", "cache_config", "quant_config", "lora_config")
_OLD_FORWARD = ("kv_caches", "attn_metadata")


def takes(function: Callable[..., Any] | None, name: str) -> bool:
    """Whether a function can be called with this keyword."""
    if not callable(function):
        return False
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())


def takes_config(model: type) -> bool:
    """Whether the class is made as vLLM makes models today."""
    return takes(_init(model), "vllm_config")


def lacking(model: type, *, pooling: bool) -> Iterator[str]:
    """What vLLM calls and the class does not have."""
    if not takes_config(model):
        yield "__init__(*, vllm_config, prefix='')"
    if not callable(getattr(model, "embed_input_ids", None)):
        renamed = (
            " (its old name get_input_embeddings is not called)"
            if hasattr(model, "get_input_embeddings")
            else ""
        )
        yield f"embed_input_ids(input_ids){renamed}"
    missing = [name for name in ("input_ids", "positions") if not takes(_own_forward(model), name)]
    if missing:
        yield f"forward(input_ids, positions, …): {', '.join(missing)} cannot be passed by name"
    if not pooling and not callable(getattr(model, "compute_logits", None)):
        yield "compute_logits(hidden_states)"
    if not callable(getattr(model, "load_weights", None)):
        yield "load_weights(weights) -> set of names"


def _init(model: type) -> Callable[..., Any]:
    return model.__init__  # type: ignore[misc,no-any-return]


def _own_forward(model: type) -> Callable[..., Any] | None:
    """torch.nn.Module has a stand-in `forward` that takes everything and raises."""
    forward = getattr(model, "forward", None)
    return None if getattr(forward, "__name__", "") == "_forward_unimplemented" else forward


def outdated(model: type) -> list[str]:
    """Arguments by which the interface of 2024 is known; empty for a class of today."""
    forward = [f"forward({name})" for name in _required(_own_forward(model), _OLD_FORWARD)]
    if takes_config(model):
        return forward
    return [f"__init__({name})" for name in _there(_init(model), _OLD_INIT)] + forward


def _there(function: Any, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if callable(function) and name in inspect.signature(function).parameters]


def _required(function: Any, names: tuple[str, ...]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    required = inspect.Parameter.empty
    return [name for name in names if name in parameters and parameters[name].default is required]


def fault(architecture: str, model: type, *, pooling: bool) -> Fault | None:
    """Why vLLM will not take the class; None when nothing is missing."""
    missing, old = list(lacking(model, pooling=pooling)), outdated(model)
    where = f"{architecture} ({model.__module__}.{model.__qualname__})"
    if old:
        cure = reasons.REASONS[reasons.INTERFACE_OUTDATED].cure
        message = f"{where} has the interface of 2024: {', '.join(old)}. {cure}"
        return Fault(reasons.INTERFACE_OUTDATED, "plugin", message)
    if missing:
        return Fault(reasons.INTERFACE_INCOMPLETE, "plugin", f"{where} lacks {'; '.join(missing)}")
    return None
