"""Loads the plugins' entry points as vLLM does, but one by one, and says what each did.

vLLM only logs a module that cannot be imported, dies of a function that raises, and lets a name be replaced
in silence. Here each is told apart, and one broken plugin does not hide the next.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight import engine, environment, found, logged, redact
from bowsprit_runtime.preflight.causes import lack_of_gpu, told
from bowsprit_runtime.preflight.events import Teller
from bowsprit_runtime.preflight.found import Found
from bowsprit_runtime.report import Fault

Registry = Mapping[str, Any]
Register = Callable[[str, Any], None]

_ADAPTER = "bowsprit_runtime.model_architectures:register"
_NO_CLASS = "should be a string or PyTorch model class"
"""vLLM's words for what is registered and is neither."""


@dataclass
class Loaded:
    """What one plugin did when it was loaded."""

    found: Found
    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """Names that were vLLM's own before."""
    taken: list[str] = field(default_factory=list)
    """Names that were another plugin's before."""
    logged: list[logged.Logged] = field(default_factory=list)
    environment: set[str] = field(default_factory=set)
    """Names of environment variables that it changed, by its own code or by others' on its behalf."""
    faults: list[Fault] = field(default_factory=list)

    @property
    def architectures(self) -> list[str]:
        return [*self.added, *self.replaced, *self.taken]

    def as_json(self) -> dict[str, Any]:
        main = self.found.main
        return {
            "name": self.found.name,
            "version": main.version if main else "",
            "entryPoints": sorted({entry.name for entry in self.found.entry_points}),
            "architectures": self.architectures,
            "more": 0,
        }


class Loader:
    """Loads into one process, whose registry it watches. `allowed` is VLLM_PLUGINS, None when unset."""

    def __init__(
        self, tell: Teller, registry: Registry, register: Register, allowed: Sequence[str] | None
    ) -> None:
        self._tell, self._registry, self._register, self._allowed = tell, registry, register, allowed
        self._owner: dict[str, str] = {}
        # Here, because this import is one of vLLM too, whose faults are told in a step of their own.
        self._adapter = importlib.import_module("bowsprit_runtime.model_architectures")

    def load_others(self, plugins: Sequence[Found]) -> None:
        """What the engine image brings itself: its faults are the image's."""
        ours = {entry.value for one in plugins for entry in one.entry_points} | {_ADAPTER}
        for entry in importlib.metadata.entry_points(group=found.GENERAL):
            if entry.value not in ours and found.loaded(entry.name, self._allowed):
                fault = self._run("the engine image", entry, ())
                if fault:
                    self._tell.fault(Fault(fault.reason, "image", fault.message))

    def load(self, plugin: Found) -> Loaded:
        """Loads a plugin's general entry points, and what it declares as model architectures."""
        result = Loaded(plugin)
        folder = [str(plugin.plugin.target)]
        before = dict(self._registry)
        with logged.errors() as heard, environment.changes(engine.folder()) as changed:
            for entry in plugin.entry_points:
                if entry.group in (found.GENERAL, found.ARCHITECTURES) and found.loaded(
                    entry.name, self._allowed
                ):
                    fault = self._run(plugin.name, entry, folder)
                    result.faults += [fault] if fault else []
        result.logged, result.environment = heard, changed
        self._compare(result, before)
        return result

    def _run(self, plugin: str, entry: importlib.metadata.EntryPoint, folder: Sequence[str]) -> Fault | None:
        where = f"{plugin}: {entry.name} = {entry.value}"
        try:
            with self._tell.step(f"importing {where}", plugin=plugin):
                target = entry.load()
        except Exception as error:
            return _fault(reasons.PLUGIN_IMPORT_FAILED, f"{where} cannot be imported", error, folder)
        try:
            with self._tell.step(f"calling {where}", plugin=plugin):
                if entry.group == found.GENERAL:
                    target()
                else:
                    for architecture, model in self._adapter.architectures({entry.name: target}).items():
                        self._register(architecture, model)
        except Exception as error:
            reason = reasons.NOT_A_MODEL_CLASS if _NO_CLASS in str(error) else reasons.PLUGIN_RAISED
            return _fault(reason, f"{where} raised an exception", error, folder)
        return None

    def _compare(self, result: Loaded, before: Registry) -> None:
        for name, model in self._registry.items():
            if name in before and before[name] == model:
                continue
            owner = self._owner.get(name)
            kind = result.added if name not in before else result.taken if owner else result.replaced
            kind.append(name)
            self._owner[name] = result.found.name


def _fault(reason: str, what: str, error: BaseException, folder: Sequence[str]) -> Fault:
    lack = lack_of_gpu(error)
    if lack:
        return Fault(lack.reason, "plugin", f"{what} without {lack.without}: {told(error, folder)}")
    return Fault(reason, "plugin", f"{what}: {told(error, folder)}")


def warnings(loaded: Loaded) -> Iterator[str]:
    name = loaded.found.name
    if loaded.replaced:
        yield (
            f"{name} replaces vLLM's own {_list(loaded.replaced)} for every model in this engine; vLLM says "
            "nothing of it"
        )
    if loaded.taken:
        yield f"{name} replaces {_list(loaded.taken)} of another plugin: the last one loaded wins"
    if loaded.environment:
        yield (
            f"{name} changes the environment ({_list(sorted(loaded.environment))}); what it decides by what "
            "it finds may be another thing in preflight than where it serves"
        )
    if not loaded.faults and not loaded.architectures and _is_general(loaded):
        yield f"{name} was loaded and registered no architecture{heard(loaded)}"


def heard(loaded: Loaded) -> str:
    """The first error that it logged, as the end of a sentence."""
    if not loaded.logged:
        return ""
    first = loaded.logged[0]
    folder = [str(loaded.found.plugin.target)]
    cause = f": {told(first.error, folder)}" if first.error else ""
    return f"; it logged {redact.of_this_process(first.text).strip()[:200]!r}{cause}"


def _is_general(loaded: Loaded) -> bool:
    return any(entry.group == found.GENERAL for entry in loaded.found.entry_points)


def _list(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
