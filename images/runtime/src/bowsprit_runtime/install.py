"""Plugins into folders of their own, by the engine image's own pip, and a look at what came of it.

`--no-deps`, because a dependency that replaces torch or vLLM breaks the engine; a fresh folder each, because
`pip --target` keeps what it finds there. All faults are told at once. The same code runs in preflight and in
every rank, so that what was proven is what serves.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bowsprit_runtime import dependencies, engine_pip, index, reasons, shadowing, wheels
from bowsprit_runtime.dependencies import Unmet
from bowsprit_runtime.distributions import engine_path, installed, versions
from bowsprit_runtime.plugins import Plugin, plugins_of
from bowsprit_runtime.preflight import redact
from bowsprit_runtime.report import EXIT_FINE, TERMINATION_LOG, Fault, Report, encoded


@dataclass
class Installation:
    """What came of it."""

    faults: list[Fault] = field(default_factory=list)
    """Any of them keeps the engine from starting."""
    warnings: list[str] = field(default_factory=list)
    unmet: list[Unmet] = field(default_factory=list)


def install(plugins: Sequence[Plugin]) -> Installation:
    """Installs all and holds them against the engine and each other. Faults are returned, not raised."""
    done = Installation()
    if not plugins:
        return done
    engine = engine_path(plugin.target for plugin in plugins)
    engine_versions = versions(engine)
    if "vllm" not in engine_versions:
        return Installation([_no_vllm()])
    for plugin in plugins:
        done.faults += _install_one(plugin)
    there = [plugin for plugin in plugins if plugin.target.is_dir()]
    for plugin in there:
        done.faults += shadowing.of_the_engine(plugin, engine, engine_versions)
        done.warnings += _path_files(plugin)
    done.faults += shadowing.of_each_other(there)
    if not done.faults:
        done.unmet = dependencies.unmet(there, engine)
    return done


def main(arguments: list[str]) -> int:
    """Installs what BOWSPRIT_PLUGINS says; faults go to the named file too, as a report."""
    plugins = plugins_of(os.environ)
    done = install(plugins)
    for plugin in plugins:
        for name, distribution in installed([str(plugin.target)]).items():
            _say(f"{plugin.target}: {name} {distribution.version} from {plugin.source}")
    for warning in [*done.warnings, *map(str, done.unmet)]:
        _say(f"warning: {warning}")
    for fault in done.faults:
        _say(f"{fault.reason}: {fault.message} {reasons.REASONS[fault.reason].cure}")
    if not done.faults:
        return EXIT_FINE
    report = redact.without_secrets(Report(faults=done.faults), os.environ, ())
    _leave(report, Path(arguments[0] if arguments else TERMINATION_LOG))
    return report.exit_code


def _leave(report: Report, path: Path) -> None:
    """Only into a file that is there: the kubelet has made it, for preflight and engine pods alike."""
    if path.exists():
        path.write_bytes(encoded(report.as_json()))


def _install_one(plugin: Plugin) -> list[Fault]:
    shutil.rmtree(plugin.target, ignore_errors=True)
    try:
        if plugin.wheels:
            return _install_from(plugin, plugin.wheels)
        with tempfile.TemporaryDirectory() as scratch:
            index.fetch(plugin, Path(scratch))
            return _install_from(plugin, Path(scratch))
    except Fault as fault:
        return [fault]


def _install_from(plugin: Plugin, folder: Path) -> list[Fault]:
    files, faults = wheels.chosen(plugin, folder)
    if faults:
        return faults
    done = engine_pip.run(
        "install", "--no-deps", "--no-index", "--target", str(plugin.target), *map(str, files)
    )
    if done.returncode:
        text = f"pip could not install {plugin.source}: {engine_pip.errors(done.stdout)}."
        return [Fault(reasons.INSTALL_FAILED, "plugin", text)]
    return []


def _path_files(plugin: Plugin) -> list[str]:
    return [
        f"{plugin.source} brings {file.name}, which Python does not run from a plugin's folder: "
        "what it sets up is missing, so let the entry point do it"
        for file in sorted(plugin.target.glob("*.pth"))
    ]


def _no_vllm() -> Fault:
    return Fault(
        reasons.ENGINE_MISSING,
        "image",
        f"{sys.executable} of the engine image finds no vllm, so nothing can be compared with it.",
    )


def _say(line: str) -> None:
    print(f"bowsprit: {line}", flush=True)
