"""status of a ModelDeployment: what Bowsprit has decided and observed.

Everything in it can be computed again from the cluster, except which replica was promised which nodes while its pods
do not stand yet: `plan.replicas` carries that over a restart of the operator. All lists are bounded, because the
object has to fit into etcd.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from bowsprit.api.base import ATOMIC, ApiModel, Schema, example, keyed_by

REPLICAS_MAX = 4096
"""Most entries of status.plan.replicas: those of the target revision and those that it replaces."""
STAGES_MAX = 1024
"""Most pipeline stages of one replica, and so most pods."""
UNOBSERVED = -1
"""status.observedGeneration of an object that no operator has looked at, by a default in the schema.

Whoever waits by kstatus (Flux, kpt, Helm) would else take the new object, which has no condition yet, for done.
"""


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class StatusCondition(ApiModel):
    """A metav1.Condition."""

    type: Annotated[
        str, Field(min_length=1, max_length=316, description="What it is about, such as Ready or Planned.")
    ]
    status: Annotated[ConditionStatus, Field(description="True, False or Unknown.")]
    reason: Annotated[
        str,
        Field(
            min_length=1, max_length=1024, description="Why, in one CamelCase word that scripts may compare."
        ),
    ]
    message: Annotated[
        str, Field(max_length=32768, description="Why, in words, with numbers and what to do next.")
    ]
    last_transition_time: Annotated[
        str, Schema({"format": "date-time"}), Field(description="When `status` last changed.")
    ]
    observed_generation: Annotated[
        int | None,
        Schema({"format": "int64"}),
        Field(default=None, ge=0, description="metadata.generation that it was judged for."),
    ]


class PodPlacement(ApiModel):
    """One pod of a replica."""

    node: Annotated[str, Field(max_length=253, description="Node that the pod is pinned to.")]
    gpus: Annotated[int, Field(ge=1, description="GPUs that it takes there.")]


class StageMemory(ApiModel):
    """Memory of one GPU of a pipeline stage, in GiB."""

    layers: Annotated[int, Field(ge=0, description="Layers of the stage.")]
    weights_gib: Annotated[float, Field(alias="weightsGiB", description="Weights, in GiB.")]
    kv_gib: Annotated[
        float,
        Field(alias="kvGiB", description="KV cache that the asked-for context and concurrency need, in GiB."),
    ]
    other_gib: Annotated[
        float, Field(alias="otherGiB", description="Activations, CUDA graphs and buffers, in GiB.")
    ]
    capacity_gib: Annotated[
        float, Field(alias="capacityGiB", description="GPU memory times utilization, in GiB.")
    ]


class PlannedReplica(ApiModel):
    """Where one replica stands or is to stand, and why there."""

    index: Annotated[int, Field(ge=0, description="Stable number of the replica.")]
    revision: Annotated[str, Field(max_length=63, description="Revision that it serves.")]
    product: Annotated[str, Field(max_length=253, description="GPU type.")]
    tensor: Annotated[int, Field(ge=1, description="Tensor-parallel size.")]
    pipeline: Annotated[int, Field(ge=1, description="Pipeline-parallel size.")]
    gpus_per_pod: Annotated[int, Field(alias="gpusPerPod", ge=1, description="GPUs of each pod.")]
    layer_partition: Annotated[
        list[int] | None,
        Field(default=None, max_length=STAGES_MAX, description="Layers of each stage, in order."),
        ATOMIC,
    ]
    pods: Annotated[
        list[PodPlacement] | None,
        Field(default=None, max_length=STAGES_MAX, description="In rank order."),
        ATOMIC,
    ]
    stages: Annotated[
        list[StageMemory] | None,
        Field(default=None, max_length=STAGES_MAX, description="Memory budget of each stage, in order."),
        ATOMIC,
    ]
    why: Annotated[
        str | None, Field(default=None, max_length=4096, description="Why this layout and these nodes.")
    ]


class PlanStatus(ApiModel):
    replicas: Annotated[
        list[PlannedReplica] | None,
        Field(default=None, max_length=REPLICAS_MAX, description="Promised and standing replicas, by index."),
        ATOMIC,
    ]


class Progress(ApiModel):
    """The clock of a rollout; it stands still while the revision waits for GPUs."""

    ready: Annotated[
        int, Field(ge=0, description="Most replicas of the new revision that have been Ready at once.")
    ]
    since: Annotated[
        str,
        Schema({"format": "date-time"}),
        Field(description="When that number was reached, or the revision got its first GPUs."),
    ]


class FailedRevision(ApiModel):
    """Why a revision is not rolled out any further; it holds until the spec asks for another."""

    revision: Annotated[str, Field(max_length=63, description="Revision that has failed.")]
    reason: Annotated[
        str,
        Field(max_length=64, description="Why: ProgressDeadlineExceeded, CrashLooping or VerifyFailed."),
    ]
    message: Annotated[
        str, Field(max_length=32768, description="What happened, in the engine's or plugin's own words.")
    ]
    time: Annotated[str, Schema({"format": "date-time"}), Field(description="When that was found.")]


class Revisions(ApiModel):
    serving: Annotated[
        str | None,
        Field(
            default=None,
            max_length=63,
            description="Revision that serves, or did last; absent until one has served.",
        ),
    ]
    target: Annotated[
        str | None, Field(default=None, max_length=63, description="Revision that the spec asks for.")
    ]
    progress: Annotated[
        Progress | None,
        Field(
            default=None,
            description="How far the rollout is; absent when none is under way or it waits for GPUs.",
        ),
    ]
    failed: Annotated[
        FailedRevision | None,
        Field(default=None, description="Revision that the spec asks for and that has failed."),
    ]


class Waiting(ApiModel):
    gpus_short: Annotated[int, Field(ge=0, description="GPUs that are missing now.")]
    position: Annotated[
        int | None, Field(default=None, ge=1, description="Place in the queue of waiting models, from 1.")
    ]
    product: Annotated[
        str | None, Field(default=None, max_length=253, description="GPU type that is missing.")
    ]
    reason: Annotated[
        str | None,
        Field(default=None, max_length=1024, description="Why it waits; see the condition Planned."),
    ]


class ModelDeploymentStatus(ApiModel):
    """What Bowsprit has decided and observed."""

    observed_generation: Annotated[
        int | None,
        Schema({"format": "int64"}),
        Field(
            default=None,
            ge=UNOBSERVED,
            description="metadata.generation that this status is about; -1 before the operator has looked.",
        ),
    ]
    conditions: Annotated[
        list[StatusCondition] | None,
        Field(
            default=None,
            max_length=16,
            description="Ready is the summary; Reconciling and Stalled speak to GitOps tools; PluginVerified, "
            "Planned, GPUsReserved, Available and Progressing are the steps.",
        ),
        keyed_by("type"),
    ]
    phase: Annotated[
        str | None,
        Field(default=None, max_length=32, description="One word for the conditions."),
        example("Ready"),
    ]
    replicas: Annotated[int | None, Field(default=None, ge=0, description="Replicas that exist.")]
    ready_replicas: Annotated[int | None, Field(default=None, ge=0, description="Replicas that answer.")]
    serving: Annotated[
        str | None,
        Field(default=None, max_length=32, description="Replicas that answer, of those asked for."),
        example("1/2"),
    ]
    selector: Annotated[
        str | None,
        Field(default=None, max_length=1024, description="Selects one pod a replica, for autoscalers."),
    ]
    url: Annotated[
        str | None,
        Field(default=None, max_length=1024, description="Where the model answers, in the cluster."),
    ]
    plan: Annotated[
        PlanStatus | None, Field(default=None, description="Which replica stands where, and why.")
    ]
    revisions: Annotated[
        Revisions | None, Field(default=None, description="What serves and what is to serve.")
    ]
    waiting: Annotated[
        Waiting | None, Field(default=None, description="What is missing; absent when nothing waits.")
    ]
    layout: Annotated[
        str | None,
        Field(
            default=None,
            max_length=256,
            description="Tensor and pipeline size of the replicas, as tp1/pp5; several when they differ.",
        ),
        example("tp1/pp5"),
    ]
    gpus: Annotated[int | None, Field(default=None, ge=0, description="GPUs that the plan holds.")]
    architecture: Annotated[
        str | None, Field(default=None, max_length=256, description="Architecture class that is loaded.")
    ]
    plugins: Annotated[
        str | None, Field(default=None, max_length=4096, description="The plugins, in one line.")
    ]
