"""What a plugin installs and the engine image, or another plugin, has too.

A plugin's folder comes before the image's own on the path, so its copy of torch or numpy would be the one
that vLLM imports, often without the parts that it needs. And of two plugins with one module the first wins.
Distributions are compared by name, and modules by what Python would import: folders without `__init__.py` are
namespaces, which several distributions share by design, so these are compared further down.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import all_suffixes
from itertools import combinations
from pathlib import Path

from bowsprit_runtime import reasons
from bowsprit_runtime.distributions import installed
from bowsprit_runtime.plugins import Plugin
from bowsprit_runtime.report import Fault

HARMLESS = frozenset({"benchmarks", "docs", "examples", "test", "tests"})
"""Folders that packages install by mistake; nobody imports them at run time."""


def of_the_engine(plugin: Plugin, engine: Sequence[str], engine_versions: dict[str, str]) -> list[Fault]:
    """Distributions and modules of one plugin that hide the engine's. `engine` is its path."""
    here = installed([str(plugin.target)])
    hidden = {name: one.version for name, one in sorted(here.items()) if name in engine_versions}
    faults = []
    if hidden:
        theirs = ", ".join(f"{name} {engine_versions[name]}" for name in hidden)
        ours = ", ".join(f"{name} {version}" for name, version in hidden.items())
        text = f"{plugin.source} brings {ours}; the engine image has {theirs}."
        faults.append(Fault(reasons.SHADOWS_ENGINE, "plugin", text))
    owners = _owners(plugin.target)
    modules = [
        module
        for module in _clashes([plugin.target], [Path(folder) for folder in engine])
        if module not in HARMLESS and owners.get(module) not in hidden
    ]
    if modules:
        text = f"{plugin.source} brings the module {_few(modules)}, which would hide the engine image's own."
        faults.append(Fault(reasons.SHADOWS_ENGINE, "plugin", text))
    return faults


def of_each_other(plugins: Sequence[Plugin]) -> list[Fault]:
    faults = [fault for plugin in plugins for fault in _within(plugin)]
    for first, second in combinations(plugins, 2):
        modules = [name for name in _clashes([first.target], [second.target]) if name not in HARMLESS]
        if modules:
            text = f"{first.source} and {second.source} both bring the module {_few(modules)}."
            faults.append(Fault(reasons.PLUGINS_OVERLAP, "plugin", text))
    return faults


def _within(plugin: Plugin) -> Iterator[Fault]:
    """Wheels of one image that wrote different contents to the same file; pip keeps the last one silently."""
    written: dict[str, dict[str, str]] = defaultdict(dict)
    for name, distribution in installed([str(plugin.target)]).items():
        for file in distribution.files or ():
            if file.hash and file.suffix == ".py":
                written[str(file)][name] = file.hash.value
    for path, digests in sorted(written.items()):
        if len(set(digests.values())) > 1:
            text = f"{' and '.join(sorted(digests))} of {plugin.source} both install {path}."
            yield Fault(reasons.PLUGINS_OVERLAP, "plugin", text)


def _clashes(ours: Sequence[Path], theirs: Sequence[Path], prefix: str = "") -> list[str]:
    """Dotted names that both sides would import something under."""
    mine, other = _importable(ours), _importable(theirs)
    if not prefix:
        other.update(dict.fromkeys(sys.builtin_module_names, False))
    found: list[str] = []
    for name in sorted(mine.keys() & other.keys()):
        if mine[name] and other[name]:
            found += _clashes(_down(ours, name), _down(theirs, name), f"{prefix}{name}.")
        elif (not mine[name] or _holds_modules(ours, name)) and (
            not other[name] or _holds_modules(theirs, name)
        ):
            found.append(prefix + name)
    return found


def _importable(folders: Iterable[Path]) -> dict[str, bool]:
    """Names that can be imported from the folders -> whether all that is found is a namespace."""
    names: dict[str, bool] = {}
    for folder in folders:
        for entry in folder.iterdir() if folder.is_dir() else ():
            name = _module_name(entry)
            if name.isidentifier() and name != "__pycache__":
                names[name] = names.get(name, True) and _is_namespace(entry)
    return names


def _module_name(entry: Path) -> str:
    if entry.is_dir():
        return entry.name
    suffix = next((suffix for suffix in all_suffixes() if entry.name.endswith(suffix)), None)
    return entry.name[: -len(suffix)] if suffix else ""


def _is_namespace(entry: Path) -> bool:
    return entry.is_dir() and not any((entry / f"__init__{suffix}").exists() for suffix in all_suffixes())


def _holds_modules(folders: Iterable[Path], name: str) -> bool:
    """A folder of data only can be imported as a namespace, and hides nothing."""
    files = (file for folder in _down(folders, name) for file in folder.rglob("*") if file.is_file())
    return any(map(_module_name, files))


def _down(folders: Iterable[Path], name: str) -> list[Path]:
    return [folder / name for folder in folders]


def _owners(target: Path) -> dict[str, str]:
    """Dotted module -> the distribution that installed it."""
    owners: dict[str, str] = {}
    for name, distribution in installed([str(target)]).items():
        for file in distribution.files or ():
            parts = [*file.parts[:-1], _module_name(Path(file.name))]
            for depth in range(1, len(parts) + 1):
                owners.setdefault(".".join(parts[:depth]), name)
    return owners


def _few(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more
