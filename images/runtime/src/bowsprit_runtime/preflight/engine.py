"""Every touch of vLLM's inside, in one place: what moves between releases is mended here.

Where there is a choice the outermost door is taken: the command line goes through `vllm`'s own main, because
the modules beneath it move with every other release. Tried from 0.25 to 0.33 (`make compat`).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from bowsprit_runtime.preflight import interface
from bowsprit_runtime.preflight.spelling import alike

STAND_IN = Path(__file__).resolve().parent / "stand_in"
STAND_IN_NAME = "bowsprit_preflight"
"""Folder and entry point of the platform plugin that lets a CUDA or ROCm build run where no GPU is."""

_CLI = ("vllm.entrypoints.cli.main", "vllm.entrypoints.cli.serve", "vllm.engine.arg_utils")


class Refused(Exception):
    """The words of vLLM's own argument parser."""


def load() -> None:
    """Imports what `vllm serve --help` does."""
    for module in _CLI:
        importlib.import_module(module)


def versions() -> dict[str, str]:
    import vllm

    return {"vllm": vllm.__version__, "python": platform.python_version(), "torch": _version("torch")}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def folder() -> Path | None:
    """vLLM's package folder; found without importing it."""
    spec = importlib.util.find_spec("vllm")
    return Path(spec.origin).parent if spec and spec.origin else None


# ---- registry ----------------------------------------------------------------------------------------------


def registry() -> Mapping[str, Any]:
    """Architecture -> what is registered, live."""
    from vllm import ModelRegistry

    return ModelRegistry.models  # type: ignore[no-any-return,unused-ignore]


def register(architecture: str, model: Any) -> None:
    from vllm import ModelRegistry

    ModelRegistry.register_model(architecture, model)


def plugins_are_loaded() -> None:
    """Tells vLLM that this process has its plugins: it would load them a second time."""
    import vllm.plugins

    vllm.plugins.plugins_loaded = True  # type: ignore[attr-defined,unused-ignore]


def class_of(registered: Any) -> Any:
    """What is registered, imported. Raises what its module raises; LookupError when the module lacks it."""
    if not hasattr(registered, "module_name"):
        return registered.load_model_cls()
    module = importlib.import_module(registered.module_name)
    if not hasattr(module, registered.class_name):
        near = alike(registered.class_name, dir(module))
        hint = f"; did you mean {near[0]}?" if near else ""
        raise LookupError(f"module {registered.module_name} has no {registered.class_name}{hint}")
    return getattr(module, registered.class_name)


def is_model_class(model: Any) -> bool:
    import torch

    return isinstance(model, type) and issubclass(model, torch.nn.Module)


def imports(module: str) -> bool:
    """Whether a module of vLLM's own can be imported."""
    try:
        importlib.import_module(module)
    except Exception:
        return False
    return True


def module_of(file: str) -> str | None:
    """The name of a module of vLLM's own, by its file; None for another file."""
    root = folder()
    if not root or not file.startswith(f"{root}/"):
        return None
    parts = Path(file).relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def supports_pipeline(model: type) -> bool:
    from vllm.model_executor.models.interfaces import supports_pp

    return bool(supports_pp(model))


# ---- arguments and configuration ---------------------------------------------------------------------------


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments as this engine's `vllm serve` understands them. Raises Refused."""
    serve = importlib.import_module("vllm.entrypoints.cli.serve")
    caught: list[argparse.Namespace] = []
    with ExitStack() as patched:
        patched.enter_context(mock.patch.object(serve.ServeSubcommand, "cmd", staticmethod(caught.append)))
        patched.enter_context(mock.patch.object(argparse.ArgumentParser, "error", _refuse))
        patched.enter_context(mock.patch.object(sys, "argv", ["vllm", "serve", *arguments]))
        try:
            importlib.import_module("vllm.entrypoints.cli.main").main()
        except SystemExit:
            raise Refused("the arguments print something and end") from None
        except (ValueError, TypeError) as error:
            raise Refused(str(error)) from error
    (namespace,) = caught
    if getattr(namespace, "model_tag", None):
        namespace.model = namespace.model_tag
    return namespace


def _refuse(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    raise Refused(message)


def configured(namespace: argparse.Namespace) -> Any:
    """The VllmConfig of these arguments; vLLM's errors come out as they are."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    return AsyncEngineArgs.from_cli_args(namespace).create_engine_config()


# ---- building ----------------------------------------------------------------------------------------------


class _ProcessGroup:
    def __init__(self, size: int) -> None:
        self._size = size

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return 0


class _Group:
    """Rank 0 of a group that does not exist: answers what constructors ask."""

    def __init__(self, size: int) -> None:
        self.world_size = size
        self.ranks = list(range(size))
        self.rank = self.local_rank = self.rank_in_group = 0
        self.first_rank, self.last_rank = 0, size - 1
        self.is_first_rank, self.is_last_rank = True, size == 1
        self.device_group = self.cpu_group = _ProcessGroup(size)
        self.device_communicator = self.mq_broadcaster = None
        self.unique_name = "preflight"


_OF_TENSOR_SIZE = ("_TP", "_ETP", "_EP", "_WORLD", "_INNER_DP_WORLD")
_OF_ONE = ("_PP", "_DP", "_DCP", "_PCP", "_EPLB")


@contextmanager
def groups(size: int) -> Iterator[None]:
    """As if this process were rank 0 of `size` tensor parallel ranks."""
    import vllm.distributed.parallel_state as state

    sizes = {**dict.fromkeys(_OF_TENSOR_SIZE, size), **dict.fromkeys(_OF_ONE, 1)}
    there = {name: _Group(ranks) for name, ranks in sizes.items() if hasattr(state, name)}
    with ExitStack() as patched:
        for name, group in there.items():
            patched.enter_context(mock.patch.object(state, name, group))
        yield


def built(config: Any, size: int, model: type | None = None) -> Any:
    """The model as rank 0 of `size` holds it, on the meta device: shapes without storage.

    `model` is the class; None takes what vLLM resolves for the configuration.
    """
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.utils import initialize_model

    config.compilation_config.static_forward_context.clear()
    default = torch.get_default_dtype()
    torch.set_default_dtype(config.model_config.dtype)
    parallel = mock.patch.object(config.parallel_config, "tensor_parallel_size", size)
    try:
        with groups(size), parallel, set_current_vllm_config(config), torch.device("meta"):
            return initialize_model(config, **({"model_class": model} if model else {}))
    finally:
        torch.set_default_dtype(default)


def parents(model: type) -> list[type]:
    """The classes of vLLM's own that a model inherits from and that are models themselves."""
    import torch

    return [
        parent
        for parent in model.__mro__[1:]
        if parent.__module__.startswith("vllm.")
        and issubclass(parent, torch.nn.Module)
        and interface.takes_config(parent)
    ]
