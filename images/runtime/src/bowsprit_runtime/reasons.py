"""Every reason that the runtime gives, with what it means and what cures it, in one place.

Reasons are API: the operator copies them into conditions, and scripts compare them. The message beside a reason
holds the names and numbers of one case; meaning and cure here hold for every case, and the reference page is
written from them.
"""

from __future__ import annotations

from typing import NamedTuple


class Explained(NamedTuple):
    """What a reason means, and what to do."""

    meaning: str
    cure: str


REASONS: dict[str, Explained] = {}
"""All reasons in the order of the page."""

NO_VERDICT = ("PreflightCrashed", "PreflightTimedOut")
"""The judging itself came to no end; it is tried again."""

NOT_JUDGED: set[str] = set()
"""Reasons that say what the judging lacked; they accuse nobody and block nothing."""


def _reason(code: str, meaning: str, cure: str) -> str:
    REASONS[code] = Explained(meaning, cure)
    return code


def _lack(code: str, meaning: str, cure: str) -> str:
    NOT_JUDGED.add(code)
    return _reason(code, meaning, cure)


# ---- install ---------------------------------------------------------------------------------------------------------

NO_WHEELS = _reason(
    "PluginHasNoWheels",
    "The plugin image holds no wheel in the named path.",
    "Set `plugins[].path` to the folder of the image that holds the *.whl files, or put them there.",
)
SOURCE_ONLY = _reason(
    "PluginIsSourceOnly",
    "The plugin comes as source and would have to be built in every pod.",
    "Build a wheel (`pip wheel --no-deps .`) and ship that.",
)
WHEEL_INCOMPATIBLE = _reason(
    "PluginWheelIncompatible",
    "The wheel is for another Python, platform or CPU architecture than the engine image has.",
    "Build the wheel for the engine image's Python and platform, or as pure Python (`py3-none-any`).",
)
REQUIRES_PYTHON = _reason(
    "PluginRequiresOtherPython",
    "The plugin's Requires-Python leaves out the engine image's Python.",
    "Use a version of the plugin for this Python, or an engine image with a Python that the plugin takes.",
)
SHADOWS_ENGINE = _reason(
    "PluginShadowsEngine",
    "The plugin brings a distribution that the engine image has too; the engine would import the plugin's copy.",
    "Leave that distribution out of the plugin image: plugins are installed without their dependencies.",
)
PLUGINS_OVERLAP = _reason(
    "PluginsOverlap",
    "Two plugins install the same file; the first one wins and the other runs with foreign code.",
    "Leave one of them out, or ship the shared code as a distribution of its own in one of the plugin images.",
)
REQUIREMENT_NOT_FOUND = _reason(
    "PluginRequirementNotFound",
    "The index has no version of the requirement for this Python and platform.",
    "Correct `plugins[].requirement`, or name the index that has it in `plugins[].indexURL`.",
)
HASH_MISMATCH = _reason(
    "PluginHashMismatch",
    "What the index delivered does not have one of the hashes that the spec names.",
    "Find out why it changed before you name its new hash: hashes protect against a changed index.",
)
INDEX_UNREACHABLE = _reason(
    "PluginIndexUnreachable",
    "The package index did not answer.",
    "Nothing to change when the index comes back; it is tried again. Else check `indexURL`, proxy and egress rules.",
)
INSTALL_FAILED = _reason(
    "PluginInstallFailed",
    "The engine image's pip could not install the plugin.",
    "The message holds pip's own words.",
)

# ---- the engine image ------------------------------------------------------------------------------------------------

ENGINE_MISSING = _reason(
    "EngineMissing",
    "The engine image's python3 has no vLLM.",
    "Use an image whose `python3` imports vllm, or put that Python first in PATH.",
)
ENGINE_IMPORT_FAILED = _reason(
    "EngineImportFailed",
    "vLLM itself cannot be imported in the engine image, without any plugin.",
    "Use another engine image, or repair this one.",
)
ENGINE_BROKEN_BY_PLUGIN = _reason(
    "EngineBrokenByPlugin",
    "vLLM can be imported in the engine image, but no longer when the plugins' folders are on the path.",
    "Leave out the distribution that the message names; the engine image has its own.",
)
ENGINE_TOO_OLD = _reason(
    "EngineTooOld",
    "The engine image's vLLM lacks what the deployment needs.",
    "Use an engine image with vLLM 0.25 or newer.",
)
ENGINE_LACKS_DEPENDENCY = _reason(
    "EngineLacksDependency",
    "Code of vLLM's own that the model needs cannot be used in this image; the plugin is not at fault.",
    "Add what the message names to the engine image.",
)
ARGUMENT_REFUSED = _reason(
    "EngineArgumentRefused",
    "The engine image's own `vllm serve` refuses its command line.",
    "Correct `engine.args`; the message holds vLLM's words.",
)
CONFIG_REFUSED = _reason(
    "EngineConfigRefused",
    "vLLM understands its arguments and refuses what they amount to for this model.",
    "Correct what vLLM's words in the message name.",
)

# ---- plugins ---------------------------------------------------------------------------------------------------------

PLUGIN_NOT_INSTALLED = _reason(
    "PluginNotInstalled",
    "A plugin's folder is empty or missing.",
    "See the log of the init container `install-plugins`.",
)
ENTRY_POINT_MISSING = _reason(
    "EntryPointMissing",
    "No installed plugin has an entry point of the name that the spec gives.",
    "Set `plugins[].entryPoints` to names that are there; the message lists them.",
)
NO_ENTRY_POINTS = _reason(
    "PluginHasNoEntryPoints",
    "A plugin is installed and has no entry point that vLLM would load.",
    "Declare one in the group `vllm.general_plugins` in the plugin's pyproject.toml.",
)
PLUGIN_IMPORT_FAILED = _reason(
    "PluginImportFailed",
    "The module of an entry point cannot be imported. vLLM would only log that and start without the plugin.",
    "Repair the first cause that the message names, or use versions of plugin and engine that go together.",
)
PLUGIN_RAISED = _reason(
    "PluginRaised",
    "The function of an entry point raised an exception. vLLM would not start.",
    "Repair the first cause that the message names.",
)
REGISTERED_NOTHING = _reason(
    "PluginRegisteredNothing",
    "A plugin was loaded and registered no architecture; vLLM would go on without it.",
    "Look at the errors that the plugin logged; the message holds the first one.",
)
PLUGIN_TIMED_OUT = _reason(
    "PluginTimedOut",
    "The plugin did not come to an end in the time that preflight has.",
    "Look for a download, a lock or an endless loop in what the message names.",
)
PLUGIN_EXITED = _reason(
    "PluginExited",
    "The plugin ended or crashed the process that loads it. It would end vLLM in the same way.",
    "Remove the call of exit, or repair the crash, in what the message names.",
)
PLUGIN_OUT_OF_MEMORY = _reason(
    "PluginOutOfMemory",
    "The plugin took more memory than preflight may use.",
    "Load no weights at import and in the constructor; or raise `engine.resources.limits.memory`.",
)
PLATFORM_CONFLICT = _reason(
    "PlatformPluginConflict",
    "Two plugins want to be the platform; vLLM takes one only.",
    "Leave one out, or name the wanted one in `plugins[].entryPoints`.",
)
DEPENDENCY_MISSING = _reason(
    "PluginDependencyMissing",
    "The plugin needs a package that neither the engine image nor the plugin brings.",
    "Add its wheel to the plugin image, or the package to the engine image.",
)
DEPENDENCY_CONFLICT = _reason(
    "PluginDependencyConflict",
    "The plugin asks for a version of a package that the engine image does not have.",
    "Use versions of plugin and engine image that go together.",
)

# ---- the architecture ------------------------------------------------------------------------------------------------

ARCHITECTURE_NOT_REGISTERED = _reason(
    "ArchitectureNotRegistered",
    "Neither vLLM nor a plugin knows the architecture.",
    "Set `architecture.override` to a name that the message lists, or add the plugin that brings it.",
)
ARCHITECTURE_IMPORT_FAILED = _reason(
    "ArchitectureImportFailed",
    "The architecture is registered, and the module that holds its class cannot be imported.",
    "Repair the first cause that the message names.",
)
NOT_A_MODEL_CLASS = _reason(
    "NotAModelClass",
    "What is registered under the architecture's name is no torch.nn.Module class.",
    'Register the class itself or "module:Class".',
)
INTERFACE_INCOMPLETE = _reason(
    "ModelInterfaceIncomplete",
    "The model class lacks methods or arguments that vLLM calls.",
    "Add what the message names.",
)
INTERFACE_OUTDATED = _reason(
    "ModelInterfaceOutdated",
    "The model class has the interface of 2024, which vLLM no longer calls.",
    "Port it: `__init__(self, *, vllm_config, prefix='')`; `embed_input_ids(input_ids)`; `forward(input_ids, positions, "
    "intermediate_tensors=None, inputs_embeds=None)` without kv_caches and attn_metadata, which `Attention` layers find "
    "by themselves; `compute_logits(hidden_states)`; `load_weights(weights) -> set[str]`.",
)
BUILD_FAILED = _reason(
    "ModelBuildFailed",
    "The model class was built without weights, as every rank will do, and raised an exception.",
    "Repair the first cause that the message names.",
)
PIPELINE_UNSUPPORTED = _reason(
    "PipelineParallelUnsupported",
    "The model is to be split into pipeline stages, and its class does not inherit SupportsPP.",
    "Set `parallelism.pipeline: 1`, or let the class inherit SupportsPP and take `intermediate_tensors`.",
)
TENSOR_REFUSED = _reason(
    "TensorParallelRefused",
    "The model class cannot be built for the tensor parallel size that the spec fixes.",
    "Set `parallelism.tensor` to a size that divides what the message names.",
)

# ---- the model -------------------------------------------------------------------------------------------------------

MODEL_NOT_FOUND = _reason(
    "ModelNotFound",
    "There is no model under the URI.",
    "Correct `model.uri`. The hub says the same of a private model when the token is missing or may not see it.",
)
REVISION_NOT_FOUND = _reason(
    "ModelRevisionNotFound",
    "The model exists and has no such revision.",
    "Correct `model.revision`.",
)
MODEL_GATED = _reason(
    "ModelGated",
    "The hub gives the model only to users who were granted access.",
    "Accept its terms on the hub and name a token in `model.tokenSecretRef`.",
)
CONFIG_MISSING = _reason(
    "ModelConfigMissing",
    "The model has no config.json.",
    "Point `model.uri` to a folder with config.json beside the weights.",
)
CONFIG_INVALID = _reason(
    "ModelConfigInvalid",
    "config.json cannot be read.",
    "Repair the file; the message says what is wrong with it.",
)
WEIGHTS_MISSING = _reason(
    "ModelWeightsMissing",
    "The model has a config.json and no weights.",
    "Complete the download into the folder that `model.uri` names.",
)
WEIGHTS_DAMAGED = _reason(
    "ModelWeightsDamaged",
    "A file of the model's weights is cut off, or no safetensors file.",
    "Download the file that the message names again, whole.",
)
HUB_UNREACHABLE = _reason(
    "HubUnreachable",
    "The model hub did not answer.",
    "Nothing to change when it comes back; it is tried again. Else check proxy and egress rules, or use `pvc://`.",
)

# ---- what the judging lacked -----------------------------------------------------------------------------------------

NEEDS_GPU = _lack(
    "NeedsGPU",
    "Code asks for a GPU already when it is loaded or built; preflight runs without one.",
    "Nothing; the start of vLLM shows it. Plugin authors: ask for the device when the model runs.",
)
NEEDS_ENVIRONMENT = _lack(
    "NeedsEnvironmentVariable",
    "The model class reads an environment variable that is not set.",
    "Set it in `engine.env`.",
)
NEEDS_FILE = _lack(
    "NeedsFile",
    "The model class reads a file that is not there in preflight.",
    "Put it beside the weights, or set `preflight: Skip` when only serving pods have it.",
)
NEEDS_DOWNLOAD = _lack(
    "NeedsDownload",
    "The model class downloads something in its constructor, and preflight could not.",
    "Keep it beside the weights, or let the pods reach it.",
)
NEEDS_WEIGHTS = _lack(
    "NeedsWeights",
    "The model class computes with its weights in its constructor; preflight has none.",
    "Nothing; the start of vLLM shows it. Plugin authors: compute in `load_weights`.",
)

# ---- serving ----------------------------------------------------------------------------------------------------------

VERIFY_FAILED = _reason(
    "VerifyFailed",
    "A serving pod did not answer the request of `rollout.verify` as that asks; found before it is ready, not in "
    "preflight.",
    "Repair the architecture or its weights; correct `rollout.verify` when the answer is right.",
)

# ---- preflight itself ------------------------------------------------------------------------------------------------

PREFLIGHT_TIMED_OUT = _lack(
    "PreflightTimedOut",
    "Preflight did not come to an end in its time, in a step that runs no plugin code.",
    "It is tried again. When it stays, give the pod more CPU: the first start in a fresh container is the slowest.",
)
PREFLIGHT_OUT_OF_MEMORY = _reason(
    "PreflightOutOfMemory",
    "The engine needs more memory to be configured than the pod may use.",
    "Raise `engine.resources.limits.memory`.",
)
PREFLIGHT_CRASHED = _lack(
    "PreflightCrashed",
    "Preflight ended without a verdict, in a step that runs no plugin code.",
    "It is tried again. When it stays, please report it with the pod's log.",
)
