"""ModelDeployment, group bowsprit.dev, version v1alpha1: the one object that users write.

The pydantic models are the source; the CRD is rendered from them (crd.py). There are no schema defaults:
defaults live in code (defaults.py), so that GitOps tools see no drift. Every field here is rendered into pods, used
by the planner, or refused; a field whose behaviour does not exist yet is not here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from bowsprit.api.base import ApiModel, class_rules, example, quoted, rule
from bowsprit.api.engine import Engine
from bowsprit.api.reserved import STREAMER, pattern
from bowsprit.api.scheduling import (
    Accelerator,
    AcceleratorResource,
    Capacity,
    KvCacheDtype,
    Objective,
    Parallelism,
    Rollout,
    RolloutMode,
    Verify,
    VerifyPath,
)
from bowsprit.api.source import (
    Architecture,
    LocalObjectRef,
    Model,
    ModelConfigSource,
    Plugin,
    Plugins,
    SecretKeyRef,
)
from bowsprit.api.status import ModelDeploymentStatus
from bowsprit.api.template import Template

__all__ = [
    "API_VERSION",
    "GROUP",
    "KIND",
    "NAME_MAX",
    "NAME_RULES",
    "PLURAL",
    "VERSION",
    "Accelerator",
    "AcceleratorResource",
    "ApiModel",
    "Architecture",
    "Capacity",
    "Engine",
    "KvCacheDtype",
    "LocalObjectRef",
    "Model",
    "ModelConfigSource",
    "ModelDeployment",
    "ModelDeploymentSpec",
    "ModelDeploymentStatus",
    "ObjectMeta",
    "Objective",
    "Parallelism",
    "Plugin",
    "Preflight",
    "Rollout",
    "RolloutMode",
    "SecretKeyRef",
    "Status",
    "Verify",
    "VerifyPath",
]

GROUP = "bowsprit.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ModelDeployment"
PLURAL = "modeldeployments"

NAME_MAX = 40
"""Longest metadata.name: children add a hash and an index and must stay within 63 characters."""

NAME_RULES = (
    rule(
        f"self.metadata.name.size() <= {NAME_MAX}",
        f"must have at most {NAME_MAX} characters: the names of pods and Services are made from it",
        ".metadata.name",
    ),
    rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "must begin with a letter and hold only lower-case letters, digits and '-': a Service gets this name",
        ".metadata.name",
    ),
    rule(
        "self.metadata.name != 'vllm'",
        "must not be vllm: a Service of that name puts VLLM_PORT into the pods of the namespace, and vLLM then fails "
        "to start; add a word to the name",
        ".metadata.name",
    ),
)


class Preflight(StrEnum):
    REQUIRED = "Required"
    SKIP = "Skip"


class ModelDeploymentSpec(ApiModel):
    """What the user wants."""

    model_config = class_rules(
        rule(
            "!self.model.uri.matches('^(s3|gs|az)://') || !has(self.engine) || !has(self.engine.args) || "
            f"self.engine.args.all(argument, !argument.matches({quoted(pattern(STREAMER.flags))}))",
            f"{STREAMER.flags[0]}: Bowsprit sets this flag (in any spelling): {STREAMER.cure}",
            ".engine.args",
        ),
        rule(
            "!has(self.accelerator) || !has(self.accelerator.resource) || self.accelerator.resource != 'cpu' || "
            "!has(self.parallelism) || ((!has(self.parallelism.tensor) || self.parallelism.tensor == 1) && "
            "(!has(self.parallelism.gpusPerPod) || self.parallelism.gpusPerPod == 1))",
            "on CPUs each pod is one pipeline stage: leave tensor and gpusPerPod out, and give each pod its cores in "
            "spec.engine.resources",
            ".parallelism",
        ),
    )

    model: Annotated[Model, Field(description="What is served, and where its weights are.")]
    architecture: Annotated[
        Architecture | None,
        Field(
            default=None,
            description="Which class loads the checkpoint; what its config.json says when absent.",
        ),
    ]
    plugins: Plugins
    preflight: Annotated[
        Preflight | None,
        Field(
            default=None,
            description="Required: a Job without a GPU first installs the plugins in the engine image, builds the model "
            "class and checks the arguments. Skip: your own word that they work; model.config is needed then.",
        ),
        example("Skip"),
    ]
    engine: Annotated[Engine | None, Field(default=None, description="The vLLM container.")]
    accelerator: Annotated[
        Accelerator | None,
        Field(default=None, description="Which GPUs may serve the model; any when absent."),
    ]
    capacity: Annotated[
        Capacity | None, Field(default=None, description="What every replica must be able to hold at once.")
    ]
    parallelism: Annotated[
        Parallelism | None,
        Field(
            default=None,
            description="Your own layout; what is absent is computed from the GPUs that are free.",
        ),
    ]
    replicas: Annotated[
        int | None,
        Field(
            default=None,
            ge=0,
            le=1_000,
            description="Complete copies of the model; 1 when absent. Leave it out of Git when an autoscaler owns it, and "
            "set it once with `kubectl scale`: autoscalers find no scale on an object without it.",
        ),
        example("2", unit="replicas"),
    ]
    priority: Annotated[
        int | None,
        Field(
            default=None,
            ge=-1_000_000_000,
            le=1_000_000_000,
            description="Higher goes first when GPUs are scarce.",
        ),
        example("100"),
    ]
    rollout: Annotated[
        Rollout | None, Field(default=None, description="How a changed spec replaces what runs.")
    ]
    template: Template
    suspend: Annotated[
        bool | None,
        Field(
            default=None,
            description="Stop all replicas and give their GPUs back; the object and its history stay.",
        ),
        example("true"),
    ]


class Status(StrEnum):
    """Values of status.phase, derived from the conditions."""

    PENDING = "Pending"
    WAITING = "Waiting"
    STARTING = "Starting"
    READY = "Ready"
    UPDATING = "Updating"
    SUSPENDED = "Suspended"
    FAILED = "Failed"


class ObjectMeta(BaseModel):
    """The part of metadata that Bowsprit reads; the rest is left alone."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)
    name: str
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    creation_timestamp: str = ""


class ModelDeployment(BaseModel):
    """One model, served in as many replicas as asked for."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)
    api_version: Literal["bowsprit.dev/v1alpha1"]
    kind: Literal["ModelDeployment"]
    metadata: ObjectMeta
    spec: ModelDeploymentSpec
