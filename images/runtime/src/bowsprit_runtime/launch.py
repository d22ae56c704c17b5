"""The start of vLLM in a pod: this process becomes `vllm serve`, so signals and exit codes are vLLM's own."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bowsprit_runtime import alive, leave, reasons, self_check, serve_arguments, vllm_distribution
from bowsprit_runtime.distributions import RUNTIME
from bowsprit_runtime.plugins import MODEL_ARCHITECTURES_GROUP, MODEL_ARCHITECTURES_PLUGIN, Plugin, plugins_of

HEAD_SECONDS = 600
"""How long a rank waits until the head's name has an address; torch waits as long for the head itself."""

_ENTER = """
import sys
sys.path[:] = [folder for folder in sys.path if folder]
sys.argv[0] = "vllm"
from {module} import {function}
sys.exit({function}())
"""
"""A console script, without the working directory on the path."""


def main(arguments: list[str]) -> int:
    # A container's first process ignores what it has no handler for, and waiting must end when the pod does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        final = serve_arguments.with_architecture_override(serve_arguments.with_group(arguments, os.environ))
    except ValueError as refused:
        _say(str(refused))
        return 2
    environ = environment(plugins_of(os.environ), os.environ)
    head = serve_arguments.head(final)
    if head and not wait_for_address(head[0]):
        return 1
    headless = serve_arguments.is_headless(final)
    alive.remember(head if headless else None)
    if not headless:
        self_check.begin(os.environ, serve_arguments.api_key(final))
        leave.stay()
        final += ["--middleware", leave.MIDDLEWARE]
    _say(f"VLLM_PLUGINS={environ.get('VLLM_PLUGINS', '(all)')}; starting vllm serve")
    for command in commands():
        _become([*command, *final], environ)
    missing = reasons.REASONS[reasons.ENGINE_MISSING]
    _say(f"{reasons.ENGINE_MISSING}: {missing.meaning} {missing.cure}")
    return 1


def environment(plugins: Sequence[Plugin], environ: Mapping[str, str]) -> dict[str, str]:
    """What vLLM and all its processes get.

    The runtime's folder comes first: vLLM imports all plugin modules in the order of the path, and one of the
    original proposal imports a module that only our own plugin supplies.
    """
    supplied = vllm_distribution.stand_in(Path(tempfile.gettempdir(), "bowsprit-vllm"))
    path = [str(RUNTIME), *(str(plugin.target) for plugin in plugins)]
    path += [str(supplied)] if supplied else []
    path += [environ["PYTHONPATH"]] if environ.get("PYTHONPATH") else []
    final = {**environ, "PYTHONPATH": os.pathsep.join(path)}
    names = _names(plugins, environ)
    if names is not None:
        final["VLLM_PLUGINS"] = ",".join(names)
    return final


def _names(plugins: Sequence[Plugin], environ: Mapping[str, str]) -> list[str] | None:
    """Entry points that vLLM loads, exactly those that the user named; None means all that there are."""
    named = [name for plugin in plugins for name in plugin.entry_points]
    if not named and "VLLM_PLUGINS" in environ:
        named = environ["VLLM_PLUGINS"].split(",")
    if not named:
        return None
    targets = [str(plugin.target) for plugin in plugins]
    adapted = {entry.name for entry in _entry_points([*targets, *sys.path], MODEL_ARCHITECTURES_GROUP)}
    return list(
        dict.fromkeys([*named, *([MODEL_ARCHITECTURES_PLUGIN] if adapted.intersection(named) else [])])
    )


def commands() -> Iterator[list[str]]:
    """Ways to run `vllm serve`, the likeliest first."""
    beside, on_path = Path(sys.executable).with_name("vllm"), shutil.which("vllm")
    for script in dict.fromkeys([str(beside) if beside.exists() else None, on_path]):
        if script:
            yield [script, "serve"]
    for entry in _entry_points(sys.path, "console_scripts"):
        if entry.name == "vllm":
            module, _, function = entry.value.partition(":")
            yield [sys.executable, "-c", _ENTER.format(module=module, function=function), "serve"]


def _entry_points(path: Sequence[str], group: str) -> list[importlib.metadata.EntryPoint]:
    found = importlib.metadata.distributions(path=list(path))
    return [entry for distribution in found for entry in distribution.entry_points if entry.group == group]


def wait_for_address(
    name: str, seconds: float = HEAD_SECONDS, pause: Callable[[float], None] = time.sleep
) -> bool:
    """Until DNS knows the head pod; False after `seconds`."""
    for waited in range(int(seconds)):
        try:
            socket.getaddrinfo(name, None)
        except OSError as unknown:
            if waited == 0:
                _say(f"waiting up to {seconds} s for the address of the group's head, {name} ({unknown})")
        else:
            return True
        pause(1)
    _say(f"{name} had no address for {seconds} s: see whether the head pod runs and DNS answers in this pod")
    return False


def _become(command: list[str], environ: dict[str, str]) -> None:
    """Returns only when that cannot be."""
    try:
        os.execve(command[0], command, environ)
    except OSError as broken:
        _say(f"{command[0]} cannot be run ({broken.strerror})")


def _say(line: str) -> None:
    print(f"bowsprit: {line}", flush=True)
