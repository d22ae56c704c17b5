"""Builds the model class without storage, as every rank will: a verdict, and the source of exact weights.

Some classes register, resolve and pass the configuration, and fail only here. When one fails, vLLM's own
parent class is tried, to know whose fault it is; and the same without quantization, whose kernels ask for a
GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight import engine, weigh
from bowsprit_runtime.preflight.candidate import Candidate
from bowsprit_runtime.preflight.causes import chain, lack_in_constructor, told
from bowsprit_runtime.preflight.events import Teller
from bowsprit_runtime.preflight.request import Request
from bowsprit_runtime.report import Fault


def judge(tell: Teller, request: Request, config: Any, candidate: Candidate | None) -> None:
    """Builds for every size of the request; tells weights, and why there are none."""
    name = config.model_config.architecture
    plugin = candidate.plugin if candidate else ""
    weights: dict[str, Any] = {}
    refused: dict[int, BaseException] = {}
    for size in request.tensors:
        try:
            with tell.step(f"building {name} for tensor parallel size {size}", plugin=plugin):
                weights[str(size)] = weigh.weights(engine.built(config, size), layers(config))
        except Exception as error:
            refused[size] = error
    tell.facts(weights=weights)
    if weights and request.tensors_are_fixed:
        for size, refusal in refused.items():
            tell.fault(_refused(request, name, size, refusal, candidate))
    if not weights:
        _tell_why(tell, request, config, candidate, min(refused.items()))


def layers(config: Any) -> int:
    """How many the configuration counts."""
    return int(getattr(config.model_config.hf_text_config, "num_hidden_layers", 0) or 0)


def _tell_why(
    tell: Teller,
    request: Request,
    config: Any,
    candidate: Candidate | None,
    refused: tuple[int, BaseException],
) -> None:
    """Nothing could be built: because of the size, of the quantization, of the engine, or of the class."""
    size, error = refused
    name = config.model_config.architecture
    if size > 1 and _builds(config, 1):
        tell.fault(_refused(request, name, size, error, candidate))
    elif config.quant_config is not None and _builds_unquantized(config, size):
        tell.warn(
            f"{name} can be built, but not with its quantization ({config.model_config.quantization}), which "
            f"needs a GPU; its weights are reckoned from config.json: {told(error)}"
        )
    else:
        tell.fault(_fault(config, candidate, size, error))


def _refused(
    request: Request, name: str, size: int, error: BaseException, candidate: Candidate | None
) -> Fault:
    """The size is the spec's, unless the plugin promised to take any."""
    promised = request.uneven_tensor_parallel and candidate is not None and bool(candidate.plugin)
    message = f"{name} cannot be built for tensor parallel size {size}: {told(error, _folders(candidate))}"
    return Fault(reasons.TENSOR_REFUSED, "plugin" if promised else "spec", message)


def _builds(config: Any, size: int, model: type | None = None) -> bool:
    try:
        engine.built(config, size, model)
    except Exception:
        return False
    return True


def _builds_unquantized(config: Any, size: int) -> bool:
    quantized, config.quant_config = config.quant_config, None
    try:
        return _builds(config, size)
    finally:
        config.quant_config = quantized


def _fault(config: Any, candidate: Candidate | None, size: int, error: BaseException) -> Fault:
    name, folders = config.model_config.architecture, _folders(candidate)
    lack = lack_in_constructor(error)
    plugin = candidate.plugin if candidate else ""
    if lack:
        message = f"{name} cannot be judged without {lack.without}: {told(error, folders)}"
        return Fault(lack.reason, "plugin" if plugin else "image", message)
    parent = next((one for one in _parents(candidate) if not _builds(config, size, one)), None)
    if parent:
        return _with_parent(parent.__qualname__, name, error, folders)
    message = f"{name} cannot be built: {told(error, folders)}"
    return Fault(reasons.BUILD_FAILED, "plugin" if plugin else "image", message)


def _parents(candidate: Candidate | None) -> list[type]:
    return engine.parents(candidate.model) if candidate and candidate.plugin else []


def _with_parent(parent: str, name: str, error: BaseException, folders: Sequence[str]) -> Fault:
    """The plugin's class fails, and so does the class of vLLM's own that it is made of."""
    own = f"vLLM's own {parent}, of which {name} is made"
    if isinstance(chain(error)[-1], ImportError):
        message = f"{own}, cannot be built in this image: {told(error, folders)}"
        return Fault(reasons.ENGINE_LACKS_DEPENDENCY, "image", message)
    message = f"{own}, cannot be built from this config.json: {told(error, folders)}"
    return Fault(reasons.BUILD_FAILED, "model", message)


def _folders(candidate: Candidate | None) -> tuple[str, ...]:
    return candidate.folders if candidate else ()
