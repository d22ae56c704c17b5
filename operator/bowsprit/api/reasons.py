"""Every condition type and reason that a user can meet, in one place.

Reasons are API: scripts and alerts compare them. A reason says what is the matter in one CamelCase word; the
numbers and the next step stand in the message.
"""

from __future__ import annotations

from enum import StrEnum


class Condition(StrEnum):
    """Condition types of a ModelDeployment."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    PLUGIN_VERIFIED = "PluginVerified"
    PLANNED = "Planned"
    GPUS_RESERVED = "GPUsReserved"
    AVAILABLE = "Available"
    PROGRESSING = "Progressing"


class Reason(StrEnum):
    """Condition reasons, grouped by the step that gives them."""

    # Spec: what the schema cannot see.
    INVALID_SPEC = "InvalidSpec"
    LAYOUT_REFUSED = "LayoutRefused"
    """An explicit parallelism that this model or this GPU type cannot have."""
    LWS_NOT_INSTALLED = "LeaderWorkerSetNotInstalled"

    # Facts.
    CONFIG_MISSING = "ModelConfigMissing"
    CONFIG_INVALID = "ModelConfigInvalid"
    CONFIG_FIELD_MISSING = "ModelConfigFieldMissing"

    # Plan.
    PLANNED = "Planned"
    INSUFFICIENT_GPUS = "InsufficientGPUs"
    FRAGMENTED = "GPUsFragmented"
    """Enough GPUs are free, but not enough on one node for a pod."""
    INSUFFICIENT_RESOURCES = "InsufficientNodeResources"
    """GPUs are free, but their nodes lack the CPU, memory or other things that a pod asks for besides."""
    NO_MATCHING_NODES = "NoMatchingNodes"
    DOES_NOT_FIT = "ModelDoesNotFit"
    """No layout holds the model on any GPU type that is there, however many are free."""
    SUSPENDED = "Suspended"
    RESUMED = "Resumed"
    """Event only: suspend was taken back."""

    # Placement and serving.
    WAITING_FOR_GPUS = "WaitingForGPUs"
    WAITING_FOR_PODS = "WaitingForPods"
    PLACING = "Placing"
    RESERVED = "Reserved"
    BIND_FAILED = "BindFailed"
    """A pinned pod was refused by its node or did not bind in time; the replica is planned again."""
    REPLICAS_READY = "ReplicasReady"
    REPLICAS_NOT_READY = "ReplicasNotReady"
    ROLLING_OUT = "RollingOut"
    ROLLOUT_COMPLETE = "RolloutComplete"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    """A new revision had its GPUs for progressDeadlineSeconds without another replica becoming Ready."""
    CRASH_LOOPING = "CrashLooping"
    """A replica of a new revision ended again and again before the revision served."""
    RECONCILING = "Reconciling"
    RECONCILED = "Reconciled"
    NODE_LOST = "NodeLost"

    # Preflight.
    PREFLIGHT_RUNNING = "PreflightRunning"
    PREFLIGHT_UNSCHEDULABLE = "PreflightUnschedulable"
    """No node takes the preflight pod."""
    PREFLIGHT_HELD = "PreflightHeld"
    """A container of the preflight pod cannot start, for want of a Secret, say."""
    IMAGE_PULL_FAILED = "ImagePullFailed"
    VERIFIED = "Verified"
    VERIFIED_WITH_WARNINGS = "VerifiedWithWarnings"
    UNJUDGED = "Unjudged"
    """Preflight lacked something to judge with; it blocks nothing."""
    PREFLIGHT_SKIPPED = "PreflightSkipped"
    NO_PLUGINS = "NoPlugins"

    VERIFY_FAILED = "VerifyFailed"
    """A new revision did not answer spec.rollout.verify as it asks."""

    # What preflight finds, in the words of bowsprit_runtime/reasons.py; each has a cure in cures.py.
    NO_WHEELS = "PluginHasNoWheels"
    SOURCE_ONLY = "PluginIsSourceOnly"
    WHEEL_INCOMPATIBLE = "PluginWheelIncompatible"
    REQUIRES_PYTHON = "PluginRequiresOtherPython"
    SHADOWS_ENGINE = "PluginShadowsEngine"
    PLUGINS_OVERLAP = "PluginsOverlap"
    REQUIREMENT_NOT_FOUND = "PluginRequirementNotFound"
    HASH_MISMATCH = "PluginHashMismatch"
    INDEX_UNREACHABLE = "PluginIndexUnreachable"
    INSTALL_FAILED = "PluginInstallFailed"
    ENGINE_MISSING = "EngineMissing"
    ENGINE_IMPORT_FAILED = "EngineImportFailed"
    ENGINE_BROKEN_BY_PLUGIN = "EngineBrokenByPlugin"
    ENGINE_TOO_OLD = "EngineTooOld"
    ENGINE_LACKS_DEPENDENCY = "EngineLacksDependency"
    ARGUMENT_REFUSED = "EngineArgumentRefused"
    CONFIG_REFUSED = "EngineConfigRefused"
    PLUGIN_NOT_INSTALLED = "PluginNotInstalled"
    ENTRY_POINT_MISSING = "EntryPointMissing"
    NO_ENTRY_POINTS = "PluginHasNoEntryPoints"
    PLUGIN_IMPORT_FAILED = "PluginImportFailed"
    PLUGIN_RAISED = "PluginRaised"
    REGISTERED_NOTHING = "PluginRegisteredNothing"
    PLUGIN_TIMED_OUT = "PluginTimedOut"
    PLUGIN_EXITED = "PluginExited"
    PLUGIN_OUT_OF_MEMORY = "PluginOutOfMemory"
    PLATFORM_CONFLICT = "PlatformPluginConflict"
    DEPENDENCY_MISSING = "PluginDependencyMissing"
    DEPENDENCY_CONFLICT = "PluginDependencyConflict"
    ARCHITECTURE_NOT_REGISTERED = "ArchitectureNotRegistered"
    ARCHITECTURE_IMPORT_FAILED = "ArchitectureImportFailed"
    NOT_A_MODEL_CLASS = "NotAModelClass"
    INTERFACE_INCOMPLETE = "ModelInterfaceIncomplete"
    INTERFACE_OUTDATED = "ModelInterfaceOutdated"
    BUILD_FAILED = "ModelBuildFailed"
    PIPELINE_UNSUPPORTED = "PipelineParallelUnsupported"
    TENSOR_REFUSED = "TensorParallelRefused"
    MODEL_NOT_FOUND = "ModelNotFound"
    REVISION_NOT_FOUND = "ModelRevisionNotFound"
    MODEL_GATED = "ModelGated"
    WEIGHTS_MISSING = "ModelWeightsMissing"
    WEIGHTS_DAMAGED = "ModelWeightsDamaged"
    HUB_UNREACHABLE = "HubUnreachable"
    NEEDS_GPU = "NeedsGPU"
    NEEDS_ENVIRONMENT = "NeedsEnvironmentVariable"
    NEEDS_FILE = "NeedsFile"
    NEEDS_DOWNLOAD = "NeedsDownload"
    NEEDS_WEIGHTS = "NeedsWeights"
    PREFLIGHT_TIMED_OUT = "PreflightTimedOut"
    PREFLIGHT_OUT_OF_MEMORY = "PreflightOutOfMemory"
    PREFLIGHT_CRASHED = "PreflightCrashed"

    # Errors of the operator's own.
    APPLY_FAILED = "ApplyFailed"
    """The API server refused a child object; its words are in the message."""
