"""What is installed in the plugins' folders, and which of it vLLM will load: from metadata, nothing is run.

vLLM loads by entry-point name, and VLLM_PLUGINS filters every group of them by name except logits processors.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bowsprit_runtime import reasons
from bowsprit_runtime.plugins import Plugin
from bowsprit_runtime.preflight.spelling import alike
from bowsprit_runtime.report import Fault

GENERAL = "vllm.general_plugins"
ARCHITECTURES = "vllm.model_architectures"
"""Of the original proposal (vLLM pull request 7438); Bowsprit's adapter loads it."""
PLATFORM = "vllm.platform_plugins"
IO_PROCESSORS = "vllm.io_processor_plugins"
LOGITS_PROCESSORS = "vllm.logits_processors"
GROUPS = (
    GENERAL,
    ARCHITECTURES,
    PLATFORM,
    IO_PROCESSORS,
    LOGITS_PROCESSORS,
    "vllm.stat_logger_plugins",
    "vllm.endpoint_plugins",
)


@dataclass(frozen=True)
class Found:
    """One plugin as it is installed."""

    plugin: Plugin
    distributions: tuple[importlib.metadata.Distribution, ...]

    @property
    def entry_points(self) -> list[importlib.metadata.EntryPoint]:
        return [entry for one in self.distributions for entry in one.entry_points if entry.group in GROUPS]

    @property
    def main(self) -> importlib.metadata.Distribution | None:
        """The distribution that is the plugin; the others came with it."""
        with_entries = (
            one for one in self.distributions if any(entry.group in GROUPS for entry in one.entry_points)
        )
        return next(with_entries, next(iter(self.distributions), None))

    @property
    def name(self) -> str:
        return self.main.metadata["Name"] if self.main else self.plugin.source


def find(plugins: Iterable[Plugin]) -> list[Found]:
    return [Found(one, tuple(importlib.metadata.distributions(path=[str(one.target)]))) for one in plugins]


def faults(found: Sequence[Found]) -> Iterator[Fault]:
    """What metadata alone shows to be wrong."""
    for one in found:
        if not one.distributions:
            yield Fault(
                reasons.PLUGIN_NOT_INSTALLED,
                "plugin",
                f"{one.plugin.source} is not installed in {one.plugin.target}",
            )
        elif not one.entry_points:
            yield _no_entry_points(one)
        else:
            yield from _missing_names(one, found)


def _no_entry_points(one: Found) -> Fault:
    others = sorted(
        {entry.group for dist in one.distributions for entry in dist.entry_points} - {"console_scripts"}
    )
    has = f"its groups are {', '.join(others)}" if others else "it declares none"
    message = f"{one.name} has no entry point in {GENERAL} or another group that vLLM loads; {has}"
    return Fault(reasons.NO_ENTRY_POINTS, "plugin", message)


def _missing_names(one: Found, found: Sequence[Found]) -> Iterator[Fault]:
    there = sorted({entry.name for entry in one.entry_points})
    for name in one.plugin.entry_points:
        if name not in there:
            elsewhere = [
                other.name for other in found if name in {entry.name for entry in other.entry_points}
            ]
            near = alike(name, there)
            hint = f"; did you mean {near[0]}?" if near else ""
            hint = f"; {elsewhere[0]} has it" if elsewhere else hint
            message = f"{one.name} has no entry point {name!r}; it has {', '.join(there)}{hint}"
            yield Fault(reasons.ENTRY_POINT_MISSING, "spec", message)


def loaded(name: str, allowed: Sequence[str] | None) -> bool:
    """Whether vLLM loads an entry point of this name; `allowed` is VLLM_PLUGINS, None when unset."""
    return allowed is None or name in allowed


def warnings(found: Sequence[Found], allowed: Sequence[str] | None) -> Iterator[str]:
    for one in found:
        for entry in one.entry_points:
            if entry.group == LOGITS_PROCESSORS and not loaded(entry.name, allowed):
                yield (
                    f"{one.name}: vLLM loads the logits processor {entry.name}, which entryPoints does not "
                    "name: VLLM_PLUGINS does not filter these"
                )
            if entry.group == IO_PROCESSORS and not loaded(entry.name, allowed):
                yield (
                    f"{one.name}: its I/O processor {entry.name} is not loaded, since entryPoints names "
                    f"others only; add {entry.name} when the model needs it"
                )


def platforms(found: Sequence[Found], allowed: Sequence[str] | None) -> list[str]:
    """Names of the platform plugins that plugins bring and vLLM will try."""
    return [
        entry.name
        for one in found
        for entry in one.entry_points
        if entry.group == PLATFORM and loaded(entry.name, allowed)
    ]
