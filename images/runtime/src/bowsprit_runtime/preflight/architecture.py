"""The architecture: its class, the configuration that vLLM makes for it, and its weight on a rank."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight import building, engine, interface, model_files, refusal
from bowsprit_runtime.preflight.asked import Asked
from bowsprit_runtime.preflight.candidate import Candidate
from bowsprit_runtime.preflight.causes import chain, lack_of_gpu, places, told, within
from bowsprit_runtime.preflight.events import Teller
from bowsprit_runtime.preflight.request import Request
from bowsprit_runtime.report import Fault

_MODELS = ("vllm.model_executor.models.", "vllm.models.")
"""Where vLLM keeps model classes; other modules of it are on the way of every import."""


def judge(tell: Teller, request: Request, asked: Asked) -> None:
    registered = next((name for name in asked.names if name in engine.registry()), None)
    broken_plugin = any(one.faults for one in asked.loaded)
    if asked.names and registered is None and broken_plugin:
        return  # what is missing is what the broken plugin, told already, would have brought
    try:
        candidate = _candidate(tell, registered, asked) if registered else None
        config = _configured(tell, asked, candidate)
    except Fault as fault:
        tell.fault(fault)
        return
    _tell_facts(tell, asked, config)
    if candidate:
        pooling = config.model_config.runner_type == "pooling"
        _judge_class(tell, request, asked.namespace, candidate, pooling=pooling)
    building.judge(tell, request, config, candidate)


# ---- the class ---------------------------------------------------------------------------------------------


def _candidate(tell: Teller, name: str, asked: Asked) -> Candidate:
    """Imports the class here, which spares vLLM a second process to inspect it in. Raises Fault."""
    owner = next((one.found.name for one in reversed(asked.loaded) if name in one.architectures), "")
    folders = asked.folders
    registered = engine.registry()[name]
    blame = "plugin" if owner else "image"
    try:
        with tell.step(f"importing the class of {name}", plugin=owner):
            model = engine.class_of(registered)
            if not engine.is_model_class(model):
                message = (
                    f"{owner or 'vLLM'} registers {model!r} as {name}; expected a class of torch.nn.Module"
                )
                raise Fault(reasons.NOT_A_MODEL_CLASS, blame, message)
            engine.register(name, model)
    except Fault:
        raise
    except Exception as error:
        raise _import_fault(name, owner, folders, error) from error
    return Candidate(name, model, owner, folders)


def _import_fault(name: str, owner: str, folders: Sequence[str], error: BaseException) -> Fault:
    who = owner or "vLLM"
    lack = lack_of_gpu(error)
    if lack:
        message = f"the class of {name} cannot be judged without {lack.without}: {told(error, folders)}"
        return Fault(lack.reason, "plugin" if owner else "image", message)
    if _is_the_engines(error, folders):
        message = f"vLLM's own code under {name} cannot be imported in this image: {told(error, folders)}"
        return Fault(reasons.ENGINE_LACKS_DEPENDENCY, "image", message)
    message = f"{who} registers {name}, and its class cannot be imported: {told(error, folders)}"
    return Fault(reasons.ARCHITECTURE_IMPORT_FAILED, "plugin" if owner else "image", message)


def _is_the_engines(error: BaseException, folders: Sequence[str]) -> bool:
    """Whether it began under a module of vLLM's own, which fails without the plugin too: that is tried."""
    for place in reversed(places(chain(error)[-1])):
        if within(place.file, folders):
            return False
        module = engine.module_of(place.file)
        if module is not None and module.startswith(_MODELS):
            return not engine.imports(module)
    return False


def _judge_class(
    tell: Teller, request: Request, namespace: argparse.Namespace, candidate: Candidate, *, pooling: bool
) -> None:
    """What vLLM finds out too late: it took the configuration."""
    supports = engine.supports_pipeline(candidate.model)
    tell.facts(supportsPP=supports)
    if (request.pipeline or 1) > 1:
        if not supports:
            message = (
                f"{request.pipeline} pipeline stages are asked for, and {candidate.name} "
                f"({candidate.model.__module__}.{candidate.model.__qualname__}) does not inherit SupportsPP"
            )
            tell.fault(Fault(reasons.PIPELINE_UNSUPPORTED, "plugin" if candidate.plugin else "spec", message))
        if not hasattr(namespace, "nnodes"):
            version = engine.versions()["vllm"]
            message = f"vLLM {version} has no --nnodes: it cannot run over several pods without Ray"
            tell.fault(Fault(reasons.ENGINE_TOO_OLD, "image", message))
    if candidate.plugin:
        _judge_interface(tell, candidate, pooling=pooling, loads=namespace.load_format != "dummy")


def _judge_interface(tell: Teller, candidate: Candidate, *, pooling: bool, loads: bool) -> None:
    fault = interface.fault(candidate.name, candidate.model, pooling=pooling)
    if fault is None:
        return
    needed_at_load = loads and not callable(getattr(candidate.model, "load_weights", None))
    if fault.reason == reasons.INTERFACE_OUTDATED or needed_at_load:
        tell.fault(fault)
    else:
        tell.warn(f"{fault.message}; vLLM takes it all the same")


# ---- the configuration -------------------------------------------------------------------------------------


def _configured(tell: Teller, asked: Asked, candidate: Candidate | None) -> Any:
    """The VllmConfig. Raises Fault."""
    try:
        with tell.step("configuring the engine", plugin=candidate.plugin if candidate else ""):
            return engine.configured(asked.namespace)
    except Exception as error:
        raise refusal.fault(refusal.Case(error, asked, candidate)) from error


def _tell_facts(tell: Teller, asked: Asked, config: Any) -> None:
    model = config.model_config
    if asked.config is None:
        tell.facts(config=model_files.packed(json.loads(model.hf_config.to_json_string(use_diff=False))))
    tell.facts(
        architecture=model.architecture,
        maxModelLen=model.max_model_len,
        dtype=str(model.dtype).replace("torch.", ""),
        quantization=model.quantization,
    )
    if asked.checkpoint is not None:
        tell.facts(checkpoint=asked.checkpoint.weights(building.layers(config), model.dtype.itemsize))
