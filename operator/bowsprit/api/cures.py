"""What cures the faults that preflight finds: the second half of their messages.

The runtime, which finds them, has only 4 KiB to tell; so it tells reason and case, and the cure is added here.
The texts are those of bowsprit_runtime/reasons.py, and a test holds them together.
"""

from __future__ import annotations

from collections.abc import Mapping

from bowsprit.api.reasons import Reason

CURES: Mapping[Reason, str] = {
    Reason.VERIFY_FAILED: (
        "Repair the architecture or its weights; correct `rollout.verify` when the answer is right."
    ),
    Reason.NO_WHEELS: (
        "Set `plugins[].path` to the folder of the image that holds the *.whl files, or put them there."
    ),
    Reason.SOURCE_ONLY: "Build a wheel (`pip wheel --no-deps .`) and ship that.",
    Reason.WHEEL_INCOMPATIBLE: (
        "Build the wheel for the engine image's Python and platform, or as pure Python (`py3-none-any`)."
    ),
    Reason.REQUIRES_PYTHON: (
        "Use a version of the plugin for this Python, or an engine image with a Python that the plugin takes."
    ),
    Reason.SHADOWS_ENGINE: (
        "Leave that distribution out of the plugin image: plugins are installed without their dependencies."
    ),
    Reason.PLUGINS_OVERLAP: (
        "Leave one of them out, or ship the shared code as a distribution of its own in one of the plugin "
        "images."
    ),
    Reason.REQUIREMENT_NOT_FOUND: (
        "Correct `plugins[].requirement`, or name the index that has it in `plugins[].indexURL`."
    ),
    Reason.HASH_MISMATCH: (
        "Find out why it changed before you name its new hash: hashes protect against a changed index."
    ),
    Reason.INDEX_UNREACHABLE: (
        "Nothing to change when the index comes back; it is tried again. Else check `indexURL`, proxy and "
        "egress rules."
    ),
    Reason.INSTALL_FAILED: "The message holds pip's own words.",
    Reason.ENGINE_MISSING: "Use an image whose `python3` imports vllm, or put that Python first in PATH.",
    Reason.ENGINE_IMPORT_FAILED: "Use another engine image, or repair this one.",
    Reason.ENGINE_BROKEN_BY_PLUGIN: (
        "Leave out the distribution that the message names; the engine image has its own."
    ),
    Reason.ENGINE_TOO_OLD: "Use an engine image with vLLM 0.25 or newer.",
    Reason.ENGINE_LACKS_DEPENDENCY: "Add what the message names to the engine image.",
    Reason.ARGUMENT_REFUSED: "Correct `engine.args`; the message holds vLLM's words.",
    Reason.CONFIG_REFUSED: "Correct what vLLM's words in the message name.",
    Reason.PLUGIN_NOT_INSTALLED: "See the log of the init container `install-plugins`.",
    Reason.ENTRY_POINT_MISSING: (
        "Set `plugins[].entryPoints` to names that are there; the message lists them."
    ),
    Reason.NO_ENTRY_POINTS: (
        "Declare one in the group `vllm.general_plugins` in the plugin's pyproject.toml."
    ),
    Reason.PLUGIN_IMPORT_FAILED: (
        "Repair the first cause that the message names, or use versions of plugin and engine that go "
        "together."
    ),
    Reason.PLUGIN_RAISED: "Repair the first cause that the message names.",
    Reason.REGISTERED_NOTHING: (
        "Look at the errors that the plugin logged; the message holds the first one."
    ),
    Reason.PLUGIN_TIMED_OUT: "Look for a download, a lock or an endless loop in what the message names.",
    Reason.PLUGIN_EXITED: "Remove the call of exit, or repair the crash, in what the message names.",
    Reason.PLUGIN_OUT_OF_MEMORY: (
        "Load no weights at import and in the constructor; or raise `engine.resources.limits.memory`."
    ),
    Reason.PLATFORM_CONFLICT: "Leave one out, or name the wanted one in `plugins[].entryPoints`.",
    Reason.DEPENDENCY_MISSING: "Add its wheel to the plugin image, or the package to the engine image.",
    Reason.DEPENDENCY_CONFLICT: "Use versions of plugin and engine image that go together.",
    Reason.ARCHITECTURE_NOT_REGISTERED: (
        "Set `architecture.override` to a name that the message lists, or add the plugin that brings it."
    ),
    Reason.ARCHITECTURE_IMPORT_FAILED: "Repair the first cause that the message names.",
    Reason.NOT_A_MODEL_CLASS: 'Register the class itself or "module:Class".',
    Reason.INTERFACE_INCOMPLETE: "Add what the message names.",
    Reason.INTERFACE_OUTDATED: (
        "Port it: `__init__(self, *, vllm_config, prefix='')`; `embed_input_ids(input_ids)`; "
        "`forward(input_ids, positions, intermediate_tensors=None, inputs_embeds=None)` without kv_caches "
        "and attn_metadata, which `Attention` layers find by themselves; `compute_logits(hidden_states)`; "
        "`load_weights(weights) -> set[str]`."
    ),
    Reason.BUILD_FAILED: "Repair the first cause that the message names.",
    Reason.PIPELINE_UNSUPPORTED: (
        "Set `parallelism.pipeline: 1`, or let the class inherit SupportsPP and take `intermediate_tensors`."
    ),
    Reason.TENSOR_REFUSED: "Set `parallelism.tensor` to a size that divides what the message names.",
    Reason.MODEL_NOT_FOUND: (
        "Correct `model.uri`. The hub says the same of a private model when the token is missing or may not"
        " see it."
    ),
    Reason.REVISION_NOT_FOUND: "Correct `model.revision`.",
    Reason.MODEL_GATED: "Accept its terms on the hub and name a token in `model.tokenSecretRef`.",
    Reason.CONFIG_MISSING: "Point `model.uri` to a folder with config.json beside the weights.",
    Reason.CONFIG_INVALID: "Repair the file; the message says what is wrong with it.",
    Reason.WEIGHTS_MISSING: "Complete the download into the folder that `model.uri` names.",
    Reason.WEIGHTS_DAMAGED: "Download the file that the message names again, whole.",
    Reason.HUB_UNREACHABLE: (
        "Nothing to change when it comes back; it is tried again. Else check proxy and egress rules, or use"
        " `pvc://`."
    ),
    Reason.NEEDS_GPU: (
        "Nothing; the start of vLLM shows it. Plugin authors: ask for the device when the model runs."
    ),
    Reason.NEEDS_ENVIRONMENT: "Set it in `engine.env`.",
    Reason.NEEDS_FILE: (
        "Put it beside the weights, or set `preflight: Skip` when only serving pods have it."
    ),
    Reason.NEEDS_DOWNLOAD: "Keep it beside the weights, or let the pods reach it.",
    Reason.NEEDS_WEIGHTS: "Nothing; the start of vLLM shows it. Plugin authors: compute in `load_weights`.",
    Reason.PREFLIGHT_TIMED_OUT: (
        "It is tried again. When it stays, give the pod more CPU: "
        "the first start in a fresh container is the slowest."
    ),
    Reason.PREFLIGHT_OUT_OF_MEMORY: "Raise `engine.resources.limits.memory`.",
    Reason.PREFLIGHT_CRASHED: "It is tried again. When it stays, please report it with the pod's log.",
}
