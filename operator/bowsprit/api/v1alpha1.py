"""ModelDeployment, group bowsprit.dev, version v1alpha1: the one object that users write.

The pydantic models are the source; the CRD is rendered from them (crd.py). There are no schema defaults:
defaults live in code, so that GitOps tools see no drift. Every field here is rendered into pods, used by the
planner, or refused; a field whose behaviour does not exist yet is not here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "bowsprit.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ModelDeployment"
PLURAL = "modeldeployments"

NAME_MAX = 40
"""Longest metadata.name: children add a hash and an index and must stay within 63 characters."""


class ApiModel(BaseModel):
    """camelCase on the wire; unknown fields are refused by the CLI and pruned by the API server."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class SecretKeyRef(ApiModel):
    name: Annotated[str, Field(min_length=1, max_length=253, description="Name of the Secret.")]
    key: Annotated[str, Field(min_length=1, max_length=253, description="Key within the Secret.")]


class LocalObjectRef(ApiModel):
    name: Annotated[str, Field(min_length=1, max_length=253, description="Name of the object in this namespace.")]


class ModelConfigSource(ApiModel):
    """A ConfigMap with the key config.json, and optionally model.safetensors.index.json."""

    config_map_ref: LocalObjectRef


class Model(ApiModel):
    uri: Annotated[
        str,
        Field(
            min_length=6,
            max_length=1024,
            description="Where the weights are: hf://org/name, pvc://claim/path, or s3://, gs://, az:// through "
            "vLLM's streamer.",
        ),
    ]
    revision: Annotated[str | None, Field(default=None, max_length=128, description="Branch, tag or commit (hf:// only).")]
    name: Annotated[
        str | None, Field(default=None, min_length=1, max_length=256, description="Served model name; metadata.name when absent.")
    ]
    token_secret_ref: Annotated[
        SecretKeyRef | None, Field(default=None, description="Hugging Face token; handed to the pods by reference, never read.")
    ]
    config: Annotated[
        ModelConfigSource | None, Field(default=None, description="The model's config.json, for planning without a download.")
    ]


class Architecture(ApiModel):
    override: Annotated[
        str | None,
        Field(default=None, min_length=1, max_length=128, description="Architecture class to load instead of the checkpoint's own."),
    ]
    hf_overrides: Annotated[
        dict[str, Any] | None, Field(default=None, description="Merged into the model's config.json, by vLLM and by the planner.")
    ]


class Plugin(ApiModel):
    """Exactly one of `image` and `requirement`."""

    image: Annotated[str | None, Field(default=None, max_length=1024, description="Image that holds the plugin's wheels.")]
    path: Annotated[str | None, Field(default=None, max_length=1024, description="Folder of the wheels in the image; /plugins when absent.")]
    requirement: Annotated[
        str | None, Field(default=None, max_length=1024, description="Exact pip requirement, name==version, instead of an image.")
    ]
    index_url: Annotated[str | None, Field(default=None, alias="indexURL", max_length=1024, description="Package index for `requirement`.")]
    hashes: Annotated[list[str] | None, Field(default=None, max_length=64, description="sha256:… of the files that may be installed.")]
    entry_points: Annotated[
        list[str] | None,
        Field(default=None, max_length=32, description="Entry points to load, by name: VLLM_PLUGINS holds exactly these."),
    ]


class Preflight(StrEnum):
    SKIP = "Skip"


class Engine(ApiModel):
    image: Annotated[str | None, Field(default=None, max_length=1024, description="vLLM image; the operator's default when absent.")]
    args: Annotated[
        list[str] | None, Field(default=None, max_length=128, description="Further `vllm serve` arguments; flags that the operator owns are refused.")
    ]
    env: Annotated[list[dict[str, Any]] | None, Field(default=None, max_length=128, description="Environment of the engine (core/v1 EnvVar).")]
    resources: Annotated[
        dict[str, Any] | None, Field(default=None, description="CPU and memory of one engine container; GPUs come from the plan.")
    ]
    shared_memory: Annotated[str | None, Field(default=None, description="Size of /dev/shm (quantity); 10Gi when absent.")]


class AcceleratorResource(StrEnum):
    NVIDIA = "nvidia.com/gpu"
    AMD = "amd.com/gpu"


class Accelerator(ApiModel):
    resource: Annotated[AcceleratorResource | None, Field(default=None, description="Extended resource; nvidia.com/gpu when absent.")]
    products: Annotated[list[str] | None, Field(default=None, max_length=32, description="GPU types that may be used, as the nodes' labels name them.")]
    node_selector: Annotated[dict[str, str] | None, Field(default=None, description="Labels that a node must carry.")]
    tolerations: Annotated[list[dict[str, Any]] | None, Field(default=None, max_length=32, description="Taints to tolerate (core/v1 Toleration); the taint named like the resource is always tolerated.")]


class Objective(StrEnum):
    MINIMIZE_GPUS = "MinimizeGPUs"
    MINIMIZE_LATENCY = "MinimizeLatency"


class KvCacheDtype(StrEnum):
    AUTO = "auto"
    BFLOAT16 = "bfloat16"
    FP8 = "fp8"
    FP8_E4M3 = "fp8_e4m3"
    FP8_E5M2 = "fp8_e5m2"


class Capacity(ApiModel):
    max_model_len: Annotated[int | None, Field(default=None, ge=1, le=100_000_000, description="Longest context of a request, in tokens; the model's own limit when absent.")]
    concurrency: Annotated[int | None, Field(default=None, ge=1, le=100_000, description="Requests of maxModelLen tokens whose KV cache must fit at the same time; 1 when absent.")]
    gpu_memory_utilization: Annotated[float | None, Field(default=None, ge=0.1, le=0.99, description="Share of each GPU's memory that the engine may use; 0.92 when absent.")]
    kv_cache_dtype: Annotated[KvCacheDtype | None, Field(default=None, description="Data type of the KV cache; auto when absent.")]
    cpu_offload: Annotated[str | None, Field(default=None, description="Weights per GPU that are kept in host memory (quantity, e.g. 8Gi).")]
    objective: Annotated[Objective | None, Field(default=None, description="MinimizeGPUs (when absent) or MinimizeLatency, which takes tensor parallelism on one node at the price of GPUs.")]


class Parallelism(ApiModel):
    tensor: Annotated[int | None, Field(default=None, ge=1, le=64, description="Tensor-parallel size: GPUs that share each layer; always inside one pod.")]
    pipeline: Annotated[int | None, Field(default=None, ge=1, le=1024, description="Pipeline-parallel size: stages that the layers are split into.")]
    expert: Annotated[bool | None, Field(default=None, description="Spread whole experts over the tensor ranks instead of splitting each.")]
    gpus_per_pod: Annotated[int | None, Field(default=None, alias="gpusPerPod", ge=1, le=64, description="GPUs of each pod; a multiple of tensor.")]
    layer_partition: Annotated[list[int] | None, Field(default=None, max_length=1024, description="Layers of each pipeline stage, in order.")]


class RolloutMode(StrEnum):
    AUTO = "Auto"
    SURGE = "Surge"
    RECREATE = "Recreate"


class Rollout(ApiModel):
    mode: Annotated[RolloutMode | None, Field(default=None, description="Auto (when absent): beside the old replicas where GPUs allow, else in their place. Surge: only beside. Recreate: the old ones go first.")]
    revision_history_limit: Annotated[int | None, Field(default=None, ge=0, le=100, description="Old revisions to keep; 10 when absent.")]


class ModelDeploymentSpec(ApiModel):
    model: Model
    architecture: Architecture | None = None
    plugins: Annotated[list[Plugin] | None, Field(default=None, max_length=16)]
    preflight: Preflight | None = None
    engine: Engine | None = None
    accelerator: Accelerator | None = None
    capacity: Capacity | None = None
    parallelism: Parallelism | None = None
    replicas: Annotated[int | None, Field(default=None, ge=0, le=10_000, description="Replicas; 1 when absent. Leave it out when a scaler owns it.")]
    priority: Annotated[int | None, Field(default=None, ge=-1_000_000_000, le=1_000_000_000, description="Higher goes first when GPUs are scarce; 0 when absent.")]
    rollout: Rollout | None = None
    template: Annotated[dict[str, Any] | None, Field(default=None, description="Pod template overrides (metadata, spec), merged into the pods by container name; yours wins.")]
    suspend: Annotated[bool | None, Field(default=None, description="Stop all replicas and give their GPUs back; the object and its history stay.")]


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
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)
    api_version: Literal["bowsprit.dev/v1alpha1"]
    kind: Literal["ModelDeployment"]
    metadata: ObjectMeta
    spec: ModelDeploymentSpec
