"""What plugins want and the pod does not have: they are installed without their dependencies.

This is told and does not stop anything: several public packages work outside the range that they declare, and
preflight shows whether this one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from typing import Any

from bowsprit_runtime.distributions import installed, normalized, versions
from bowsprit_runtime.engine_pip import packaging
from bowsprit_runtime.plugins import Plugin


@dataclass(frozen=True)
class Unmet:
    """One wish that is not fulfilled."""

    distribution: str
    """Who wishes, normalized."""
    version: str
    requirement: str
    """As declared, without its marker."""
    found: str | None
    """Version that is there; None when there is none."""

    def __str__(self) -> str:
        there = f"the pod has {self.found}" if self.found else "neither the engine image nor a plugin has it"
        return f"{self.distribution} {self.version} asks for {self.requirement}, and {there}"


def unmet(plugins: Sequence[Plugin], engine: Sequence[str]) -> list[Unmet]:
    """Of all plugins, with the extras that their requirements ask for. `engine` is the engine's path."""
    path = [*(str(plugin.target) for plugin in plugins), *engine]
    there, of_plugins = installed(path), installed(path[: len(plugins)])
    present = versions(path)
    waiting = [(name, "") for name in of_plugins] + [wish for plugin in plugins for wish in _extras(plugin)]
    seen: set[tuple[str, str]] = set()
    found: list[Unmet] = []
    while waiting:
        name, extra = waiting.pop(0)
        if (name, extra) in seen or name not in there:
            continue
        seen.add((name, extra))
        for requirement in _requirements(there[name], extra):
            wanted = normalized(requirement.name)
            version = present.get(wanted)
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                found.append(Unmet(name, there[name].version, _words(requirement), version))
            waiting += [(wanted, one) for one in sorted(requirement.extras)]
    return found


def _requirements(distribution: Distribution, extra: str) -> Iterable[Any]:
    """`packaging` requirements that hold here: without an extra, or those that the extra adds."""
    for line in distribution.requires or ():
        requirement = packaging("requirements").Requirement(line)
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if (always and not extra) or (extra and not always and marker.evaluate({"extra": extra})):
            yield requirement


def _extras(plugin: Plugin) -> list[tuple[str, str]]:
    if not plugin.requirement:
        return []
    requirement = packaging("requirements").Requirement(plugin.requirement)
    return [(normalized(requirement.name), extra) for extra in sorted(requirement.extras)]


def _words(requirement: Any) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"
