"""The child: judges step by step, in the order in which vLLM itself would come upon the faults.

A fault does not end the judging where the next step can still be taken, so that all are told at once.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from bowsprit_runtime import dependencies, reasons, serve_arguments
from bowsprit_runtime.distributions import engine_path, normalized
from bowsprit_runtime.plugins import plugins_of
from bowsprit_runtime.preflight import (
    architecture,
    checkpoint,
    engine,
    found,
    loading,
    model_files,
    scan,
    supervise,
)
from bowsprit_runtime.preflight.asked import Asked
from bowsprit_runtime.preflight.causes import chain, places, told, within
from bowsprit_runtime.preflight.events import Teller
from bowsprit_runtime.preflight.loading import Loaded, Loader
from bowsprit_runtime.preflight.request import Request, request_of
from bowsprit_runtime.report import Fault


def main() -> None:
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
    descriptor = int(os.environ.pop(supervise.DESCRIPTOR_ENV))
    os.set_inheritable(descriptor, False)
    judge(Teller(descriptor), request_of(os.environ))


def judge(tell: Teller, request: Request) -> None:
    plugins = found.find(plugins_of(os.environ))
    allowed = _allowed()
    for fault in found.faults(plugins):
        tell.fault(fault)
    for warning in found.warnings(plugins, allowed):
        tell.warn(warning)
    if _engine_loads(tell, plugins):
        tell.engine(**engine.versions())
        loaded = _load(tell, plugins, allowed)
        _scan(tell, plugins)
        _tell_wishes(tell, loaded)
        namespace = _parse(tell, request.arguments)
        if namespace:
            _judge_model(tell, request, namespace, loaded)
    tell.done()


def _allowed() -> list[str] | None:
    value = os.environ.get("VLLM_PLUGINS")
    return None if value is None else value.split(",")


# ---- the engine --------------------------------------------------------------------------------------------


def _engine_loads(tell: Teller, plugins: Sequence[found.Found]) -> bool:
    try:
        with tell.step("importing vLLM"):
            engine.load()
    except Exception as error:
        tell.fault(_engine_fault(error, plugins))
        return False
    return True


def _engine_fault(error: BaseException, plugins: Sequence[found.Found]) -> Fault:
    folders = [str(one.plugin.target) for one in plugins]
    if any("Only one platform plugin" in str(link) for link in chain(error)):
        return Fault(reasons.PLATFORM_CONFLICT, "plugin", told(error, folders))
    if isinstance(error, ModuleNotFoundError) and error.name == "vllm":
        return Fault(
            reasons.ENGINE_MISSING, "image", f"{sys.executable} of the engine image has no module vllm"
        )
    if folders and _loads_without(folders):
        through = [
            one.name
            for one in plugins
            if any(
                within(place.file, [str(one.plugin.target)])
                for link in chain(error)
                for place in places(link)
            )
        ]
        who = ", ".join(through or [one.name for one in plugins])
        message = f"vLLM can be imported without {who}, and not with it: {told(error, folders)}"
        return Fault(reasons.ENGINE_BROKEN_BY_PLUGIN, "plugin", message)
    return Fault(reasons.ENGINE_IMPORT_FAILED, "image", f"importing vLLM failed: {told(error)}")


def _loads_without(folders: Sequence[str]) -> bool:
    """Whether a new process without the plugins' folders can import the engine."""
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry not in folders]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    code = "from bowsprit_runtime.preflight import engine; engine.load()"
    return (
        subprocess.run([sys.executable, "-c", code], env=environ, check=False, capture_output=True).returncode
        == 0
    )


# ---- plugins -----------------------------------------------------------------------------------------------


def _load(tell: Teller, plugins: Sequence[found.Found], allowed: Sequence[str] | None) -> list[Loaded]:
    loader = Loader(tell, engine.registry(), engine.register, allowed)
    loaded = [loader.load(one) for one in plugins]
    loader.load_others(plugins)
    engine.plugins_are_loaded()
    tell.plugins([one.as_json() for one in loaded])
    for one in loaded:
        for fault in one.faults:
            tell.fault(fault)
        for warning in loading.warnings(one):
            tell.warn(warning)
    return loaded


def _tell_wishes(tell: Teller, loaded: Sequence[Loaded]) -> None:
    """Declared requirements that are not met: faults beside a fault, else warnings, for many work anyway."""
    plugins = [one.found.plugin for one in loaded]
    broken = {dist.metadata["Name"] for one in loaded if one.faults for dist in one.found.distributions}
    normal = {normalized(name) for name in broken}
    for wish in dependencies.unmet(plugins, engine_path(plugin.target for plugin in plugins)):
        if wish.distribution in normal:
            reason = reasons.DEPENDENCY_CONFLICT if wish.found else reasons.DEPENDENCY_MISSING
            tell.fault(Fault(reason, "plugin", str(wish)))
        else:
            tell.warn(str(wish))


def _scan(tell: Teller, plugins: Sequence[found.Found]) -> None:
    folder = engine.folder()
    assert folder
    for one in plugins:
        for dead in scan.dead_imports(one.plugin.target, folder, sys.modules):
            tell.warn(dead.told(one.plugin.target))


# ---- arguments and model -----------------------------------------------------------------------------------


def _parse(tell: Teller, arguments: Sequence[str]) -> argparse.Namespace | None:
    try:
        with tell.step("parsing the engine's arguments"):
            return engine.parsed(serve_arguments.with_architecture_override(arguments))
    except (engine.Refused, ValueError) as error:
        tell.fault(Fault(reasons.ARGUMENT_REFUSED, "spec", f"vllm serve: {error}"))
        return None


def _judge_model(
    tell: Teller, request: Request, namespace: argparse.Namespace, loaded: Sequence[Loaded]
) -> None:
    try:
        with tell.step("reading config.json"):
            config = model_files.read_config(
                namespace.model, namespace.revision, getattr(namespace, "hf_config_path", None)
            )
    except Fault as fault:
        tell.fault(fault)
        return
    if config is not None:
        tell.facts(config=model_files.packed(config))
    seen = _checkpoint(tell, namespace) if namespace.load_format != "dummy" else None
    architecture.judge(tell, request, Asked(namespace, config, loaded, seen))


def _checkpoint(tell: Teller, namespace: argparse.Namespace) -> checkpoint.Checkpoint | None:
    """What can be seen of the weights."""
    if missing := model_files.weights_fault(namespace.model):
        tell.fault(missing)
        return None
    try:
        with tell.step("reading the headers of the weights"):
            return checkpoint.read(namespace.model, namespace.load_format)
    except Fault as damaged:
        tell.fault(damaged)
        return None
