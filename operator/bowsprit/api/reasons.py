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
    RECONCILING = "Reconciling"
    RECONCILED = "Reconciled"
    NODE_LOST = "NodeLost"

    # Plugins.
    PREFLIGHT_SKIPPED = "PreflightSkipped"
    NO_PLUGINS = "NoPlugins"

    # Errors of the operator's own.
    APPLY_FAILED = "ApplyFailed"
    """The API server refused a child object; its words are in the message."""
