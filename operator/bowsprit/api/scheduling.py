"""spec.accelerator, capacity, parallelism and rollout: which GPUs, how much they must hold, and how they are shared out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from bowsprit.api.base import (
    ATOMIC,
    LABEL_KEY,
    LABEL_VALUE,
    LABELS_SCHEMA,
    RULES,
    SET,
    ApiModel,
    MemorySize,
    class_rules,
    example,
    matches,
    quoted,
    rule,
    rules,
)

TOLERATION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "key": {
            "type": "string",
            "maxLength": 317,
            "description": "Key of the taint; every key when absent.",
        },
        "operator": {
            "type": "string",
            "enum": ["Equal", "Exists"],
            "description": "Equal (when absent) compares value; Exists takes any value.",
        },
        "value": {"type": "string", "maxLength": 63, "description": "Value of the taint."},
        "effect": {
            "type": "string",
            "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
            "description": "Effect of the taint; every effect when absent.",
        },
        "tolerationSeconds": {
            "type": "integer",
            "format": "int64",
            "description": "How long a NoExecute taint is tolerated, in seconds; for ever when absent.",
        },
    },
    RULES: [
        rule(
            "!(has(self.operator) && self.operator == 'Exists' && has(self.value) && self.value != '')",
            "Exists takes any value: delete value, or use the operator Equal",
            ".value",
        ),
        rule(
            "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
            "a toleration without a key needs the operator Exists",
            ".operator",
        ),
        rule(
            "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            "tolerationSeconds needs the effect NoExecute",
            ".tolerationSeconds",
        ),
    ],
}


class AcceleratorResource(StrEnum):
    NVIDIA = "nvidia.com/gpu"
    AMD = "amd.com/gpu"
    CPU = "cpu"


class Accelerator(ApiModel):
    """Which GPUs may serve the model."""

    model_config = class_rules(
        rule(
            "!has(self.products) || !has(self.resource) || self.resource != 'cpu'",
            "products are GPU types: leave them out for the resource cpu, and choose nodes by nodeSelector",
            ".products",
        ),
    )

    resource: Annotated[
        AcceleratorResource | None,
        Field(
            default=None,
            description="Extended resource that the device plugin offers. cpu runs vLLM without a GPU, and kube-scheduler "
            "chooses the nodes by spec.engine.resources, those without GPUs first.",
        ),
        example("nvidia.com/gpu"),
    ]
    products: Annotated[
        list[
            Annotated[
                str,
                Field(min_length=1, max_length=63),
                matches(
                    LABEL_VALUE,
                    "must be a GPU type as the nodes' label says it, such as NVIDIA-A100-80GB-PCIe: letters, digits, "
                    "'-', '_' and '.'",
                ),
            ]
        ]
        | None,
        Field(
            default=None,
            max_length=32,
            description="GPU types that may be used, as the nodes' labels name them (nvidia.com/gpu.product, "
            "amd.com/gpu.product-name); all when absent. One replica always stands on one type.",
        ),
        SET,
        example("[NVIDIA-A100-80GB-PCIe, NVIDIA-H100-80GB-HBM3]"),
    ]
    node_selector: Annotated[
        dict[str, str] | None,
        WithJsonSchema(LABELS_SCHEMA),
        Field(default=None, description="Labels that a node must carry."),
        rules(
            rule(
                f"self.all(key, key.matches({quoted(LABEL_KEY)}) && self[key].matches({quoted(LABEL_VALUE)}))",
                "must be label keys and values as Kubernetes takes them: letters, digits, '-', '_' and '.', at most 63 "
                "characters",
            )
        ),
        example("{topology.kubernetes.io/zone: eu-west-1a}"),
    ]
    tolerations: Annotated[
        list[Annotated[dict[str, Any], WithJsonSchema(TOLERATION_SCHEMA)]] | None,
        Field(
            default=None,
            max_length=32,
            description="Taints to tolerate (core/v1 Toleration); the taint named like `resource` is always tolerated.",
        ),
        ATOMIC,
        example("[{key: dedicated, operator: Equal, value: llm, effect: NoSchedule}]"),
    ]


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
    """What every replica must be able to hold at once."""

    max_model_len: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            le=100_000_000,
            description="Longest context of a request, prompt and answer together; the model's own limit when absent.",
        ),
        example("32768", unit="tokens"),
    ]
    concurrency: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            le=100_000,
            description="Requests of maxModelLen tokens whose KV cache must fit at the same time.",
        ),
        example("4", unit="requests"),
    ]
    gpu_memory_utilization: Annotated[
        float | None,
        Field(
            default=None,
            description="Share of each GPU's memory that the engine may use; the rest is for the CUDA context "
            "and NCCL.",
        ),
        # Not minimum and maximum: the API server rounds them to whole numbers when the value is one, and takes 0.
        rules(
            rule(
                "self >= 0.1 && self <= 0.99",
                "must be a share between 0.1 and 0.99, such as 0.92",
            )
        ),
        example("0.92", unit="share of 1"),
    ]
    kv_cache_dtype: Annotated[
        KvCacheDtype | None,
        Field(default=None, description="Data type of the KV cache; auto takes the model's."),
        example("fp8"),
    ]
    cpu_offload: Annotated[
        MemorySize | None,
        Field(
            default=None,
            description="Weights of each GPU that are kept in host memory instead; none when absent.",
        ),
        example("8Gi", unit="bytes, with a suffix such as Gi"),
    ]
    objective: Annotated[
        Objective | None,
        Field(
            default=None,
            description="MinimizeGPUs takes the fewest GPUs that hold the model; MinimizeLatency takes tensor "
            "parallelism on one node, at the price of GPUs.",
        ),
        example("MinimizeLatency"),
    ]


class Parallelism(ApiModel):
    """The layout of one replica. Each field is optional: what is given wins over the planner and is checked."""

    model_config = class_rules(
        rule(
            "!has(self.gpusPerPod) || !has(self.tensor) || self.gpusPerPod % self.tensor == 0",
            "gpusPerPod must be a multiple of tensor: the GPUs that share a layer stay inside one pod",
            ".gpusPerPod",
        ),
        rule(
            "!has(self.gpusPerPod) || !has(self.tensor) || !has(self.pipeline) || "
            "(self.tensor * self.pipeline) % self.gpusPerPod == 0",
            "tensor x pipeline, the GPUs of a replica, must be a multiple of gpusPerPod: all pods of a replica are alike",
            ".gpusPerPod",
        ),
        rule(
            "!has(self.layerPartition) || !has(self.pipeline) || self.layerPartition.size() == self.pipeline",
            "layerPartition must name as many stages as pipeline has: change one of them, or leave pipeline out",
            ".layerPartition",
        ),
    )

    tensor: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            le=64,
            description="Tensor-parallel size: GPUs that share each layer, inside one pod.",
        ),
        example("2", unit="GPUs"),
    ]
    pipeline: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            le=1024,
            description="Pipeline-parallel size: stages that the layers are split into.",
        ),
        example("5", unit="stages"),
    ]
    expert: Annotated[
        bool | None,
        Field(
            default=None,
            description="Spread whole experts over the tensor ranks instead of splitting each one.",
        ),
        example("true"),
    ]
    gpus_per_pod: Annotated[
        int | None,
        Field(
            default=None,
            alias="gpusPerPod",
            ge=1,
            le=64,
            description="GPUs of each pod; a multiple of tensor. More than tensor puts several stages into one pod.",
        ),
        example("4", unit="GPUs"),
    ]
    layer_partition: Annotated[
        list[Annotated[int, Field(ge=1, le=10_000)]] | None,
        Field(
            default=None,
            min_length=1,
            max_length=1024,
            description="Layers of each pipeline stage, in order; they add up to the model's layers.",
        ),
        ATOMIC,
        example("[16, 16, 16, 16, 16]", unit="layers"),
    ]


class RolloutMode(StrEnum):
    AUTO = "Auto"
    """Beside the old replicas when it fits, else in their place."""
    SURGE = "Surge"
    """Only beside the old ones."""
    RECREATE = "Recreate"
    """The old ones go first."""


class VerifyPath(StrEnum):
    COMPLETIONS = "/v1/completions"
    CHAT = "/v1/chat/completions"


class Verify(ApiModel):
    """A request that every new engine must answer before its pod is Ready."""

    prompt: Annotated[
        str,
        Field(min_length=1, max_length=4096, description="What the engine is asked, at temperature 0."),
        matches(r"\S", "must hold more than blanks: ask something that only a sound model answers"),
        example('"The capital of France is"'),
    ]
    contains: Annotated[
        str | None,
        Field(
            default=None,
            min_length=1,
            max_length=256,
            description="Text that must be in the answer, letter for letter; any answer will do when absent.",
        ),
        matches(r"\S", "must hold more than blanks, or leave it out: every answer would do"),
        example("Paris"),
    ]
    max_tokens: Annotated[
        int | None,
        Field(default=None, ge=1, le=4096, description="Longest answer."),
        example("16", unit="tokens"),
    ]
    path: Annotated[
        VerifyPath | None,
        Field(
            default=None,
            description="Which of vLLM's endpoints is asked; /v1/chat/completions needs a chat template.",
        ),
        example("/v1/chat/completions"),
    ]


class Rollout(ApiModel):
    """How a changed spec replaces what runs."""

    mode: Annotated[
        RolloutMode | None,
        Field(
            default=None,
            description="Auto: beside the old replicas where the GPUs allow it, else in their place. Surge: only beside. "
            "Recreate: the old ones go first. On CPUs Auto is Recreate.",
        ),
        example("Recreate"),
    ]
    revision_history_limit: Annotated[
        int | None,
        Field(default=None, ge=0, le=100, description="Old revisions to keep."),
        example("10", unit="revisions"),
    ]
    progress_deadline_seconds: Annotated[
        int | None,
        Field(
            default=None,
            ge=1,
            le=604_800,
            description="How long a new revision may hold its GPUs without another of its replicas becoming Ready; it has "
            "failed then. Waiting for GPUs is not counted. When absent: 1260 s and one more for every 100 MiB of "
            "weights; 7860 s for weights of unknown size.",
        ),
        example("1800", unit="seconds"),
    ]
    rollback_on_failure: Annotated[
        bool | None,
        Field(
            default=None,
            description="Whether the revision that served before is restored when the new one fails. Either way the failed "
            "one is told in the conditions, and a rolled-back one is not tried again until the spec asks for another.",
        ),
        example("false"),
    ]
    verify: Annotated[
        Verify | None,
        Field(
            default=None,
            description="A self-check: each pod asks its engine once, and is Ready only when the answer is as it must be. "
            "Else the engine is ended, and the revision has failed. It is a part of the revision: a change of it "
            "restarts the pods, for what serves has to have passed it.",
        ),
    ]
