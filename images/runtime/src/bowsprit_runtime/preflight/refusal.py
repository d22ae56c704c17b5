"""Why vLLM made no configuration, in words that help: an ordered chain of readings, the first that fits wins.

vLLM answers "does not support `--runner generate`" where a method is missing, and lists all that it knows
where a name is; what it says of arguments and models is clear, and is passed on as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight import engine, interface, model_files
from bowsprit_runtime.preflight.asked import Asked
from bowsprit_runtime.preflight.candidate import Candidate
from bowsprit_runtime.preflight.causes import chain, lack_of_gpu, origin, told, within
from bowsprit_runtime.preflight.loading import heard
from bowsprit_runtime.preflight.spelling import alike
from bowsprit_runtime.report import Fault

_UNKNOWN = re.compile(r"are not supported for now|was supported in vLLM until|not supported in-tree anymore")
_NO_ARCHITECTURE = "No model architectures are specified"
_WRONG_RUNNER = "does not support `--runner"
_OF_THE_CPU = re.compile(r"\b(CPU|cpu)\b")
_UNKNOWN_TYPE = "Transformers does not recognize this architecture"


@dataclass(frozen=True)
class Case:
    """What vLLM raised, and what it was asked."""

    error: BaseException
    asked: Asked
    candidate: Candidate | None

    @property
    def text(self) -> str:
        return " ".join(str(link) for link in chain(self.error))

    @property
    def told(self) -> str:
        return told(self.error, self.asked.folders)


def fault(case: Case) -> Fault:
    readings = (reading(case) for reading in _READINGS)
    return next(found for found in readings if found)


def _interface(case: Case) -> Fault | None:
    if _WRONG_RUNNER not in case.text or case.candidate is None:
        return None
    pooling = case.asked.namespace.runner == "pooling"
    return interface.fault(case.candidate.name, case.candidate.model, pooling=pooling)


def _silent_plugin(case: Case) -> Fault | None:
    if not _UNKNOWN.search(case.text):
        return None
    silent = next((one for one in case.asked.loaded if not one.architectures and one.logged), None)
    if silent is None:
        return None
    missing = f"{' or '.join(case.asked.names)} is not registered"
    message = f"{missing}: {silent.found.name} registered nothing{heard(silent)}"
    return Fault(reasons.REGISTERED_NOTHING, "plugin", message)


def _not_registered(case: Case) -> Fault | None:
    """vLLM lists all that it knows; what helps is what the plugins brought, and what sounds alike."""
    if not _UNKNOWN.search(case.text):
        return None
    brought = [name for one in case.asked.loaded for name in one.architectures]
    near = [one for name in case.asked.names for one in alike(name, engine.registry(), most=2)]
    parts = [
        f"nothing registers {' or '.join(case.asked.names)}",
        f"the plugins bring {', '.join(brought[:8])}" if brought else "no plugin brings any architecture",
        "" if "are not supported for now" in case.text else f"vLLM says: {case.told}",
        f"did you mean {' or '.join(near)}?" if near else "",
    ]
    blame = "plugin" if case.asked.loaded else "spec"
    return Fault(reasons.ARCHITECTURE_NOT_REGISTERED, blame, "; ".join(part for part in parts if part))


def _no_architecture(case: Case) -> Fault | None:
    if _NO_ARCHITECTURE not in case.text:
        return None
    message = "config.json names no architecture; set architecture.override"
    return Fault(reasons.ARCHITECTURE_NOT_REGISTERED, "model", message)


def _hub(case: Case) -> Fault | None:
    return model_files.hub_fault(case.error, case.asked.namespace.model, case.asked.namespace.revision)


def _plugins_own(case: Case) -> Fault | None:
    began = origin(case.error)
    if began is None or not within(began.file, case.asked.folders):
        return None
    return Fault(
        reasons.CONFIG_REFUSED, "plugin", f"the plugin's code refuses the configuration: {case.told}"
    )


def _needs_gpu(case: Case) -> Fault | None:
    if not lack_of_gpu(case.error) and not _OF_THE_CPU.search(case.text):
        return None
    return Fault(
        reasons.NEEDS_GPU, "image", f"vLLM's configuration cannot be judged without a GPU: {case.told}"
    )


def _vllm_says(case: Case) -> Fault:
    hint = (
        "; a plugin that brings a new model_type registers it with AutoConfig"
        if _UNKNOWN_TYPE in case.text
        else ""
    )
    return Fault(reasons.CONFIG_REFUSED, "spec", f"vLLM refuses the configuration: {case.told}{hint}")


_READINGS = (
    _interface,
    _silent_plugin,
    _not_registered,
    _no_architecture,
    _hub,
    _plugins_own,
    _needs_gpu,
    _vllm_says,
)
