"""spec.engine: the vLLM container."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from bowsprit.api.base import (
    ATOMIC,
    OPEN_OBJECT,
    RULES,
    ApiModel,
    ImageReference,
    MemorySize,
    example,
    keyed_by,
    quoted,
    rule,
    rules,
)
from bowsprit.api.reserved import env_rules, flag_rules

_GPU = quoted("(^|[./])(gpu|vgpu|mig-)")
NO_GPUS = rule(
    f"self.all(name, !name.matches({_GPU}))",
    "must not name GPUs: the plan decides how many each pod gets (spec.parallelism), and "
    "spec.accelerator.resource which",
)
_QUANTITY = quoted("^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$")

QUANTITIES_SCHEMA: dict[str, Any] = {
    "type": "object",
    "maxProperties": 16,
    "additionalProperties": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "maxLength": 32,
    },
    RULES: [
        NO_GPUS,
        rule(
            f"self.all(name, string(self[name]).matches({_QUANTITY}))",
            "each value must be a quantity, such as 500m, 4 or 64Gi",
        ),
    ],
}
RESOURCES_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limits": {**QUANTITIES_SCHEMA, "description": "Most that the container may use, by resource name."},
        "requests": {**QUANTITIES_SCHEMA, "description": "What the scheduler sets aside, by resource name."},
    },
}
ENV_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "Name of the variable.",
            RULES: [
                rule(
                    "self.matches('^[A-Za-z_][A-Za-z0-9_.-]*$')",
                    "must be the name of an environment variable: letters, digits and '_'",
                )
            ],
        },
        "value": {"type": "string", "maxLength": 32768, "description": "Its value."},
        "valueFrom": {
            **OPEN_OBJECT,
            "description": "Where the value comes from instead (core/v1 EnvVarSource), such as secretKeyRef.",
        },
    },
    RULES: [
        rule("!(has(self.value) && has(self.valueFrom))", "set value or valueFrom, not both"),
        *env_rules(),
    ],
}


class Engine(ApiModel):
    """The vLLM container."""

    image: Annotated[
        ImageReference | None,
        Field(default=None, description="vLLM image, the same for every pod of the model."),
        example("vllm/vllm-openai:v0.32.0"),
    ]
    args: Annotated[
        list[Annotated[str, Field(max_length=2048), rules(*flag_rules())]] | None,
        Field(
            default=None,
            max_length=128,
            description="Further `vllm serve` arguments. Flags that Bowsprit sets itself are refused, in any spelling; "
            "the planner reckons with those that change memory (--dtype, --enable-lora, --block-size, "
            "--max-num-batched-tokens, --max-num-seqs, --enforce-eager and others).",
        ),
        ATOMIC,
        rules(
            rule(
                "self.size() == 0 || self[0].startsWith('-')",
                "the first argument must be a flag: the model is named by spec.model.uri",
            ),
            rule(
                "self.all(argument, argument != '--')",
                "-- would turn the flags after it into words: leave it out",
            ),
        ),
        example("[--enable-prefix-caching, --max-num-seqs=128]"),
    ]
    env: Annotated[
        list[Annotated[dict[str, Any], WithJsonSchema(ENV_SCHEMA)]] | None,
        Field(
            default=None,
            max_length=128,
            description="Environment of the engine container (core/v1 EnvVar); credentials by secretKeyRef.",
        ),
        keyed_by("name"),
        example("[{name: VLLM_LOGGING_LEVEL, value: DEBUG}]"),
    ]
    resources: Annotated[
        dict[str, Any] | None,
        WithJsonSchema(RESOURCES_SCHEMA),
        Field(
            default=None,
            description="CPU, memory and other resources of one engine container; the GPUs come from the plan. Of what is "
            "not said here a container asks for 2 CPUs and 8Gi, and may use 16 CPUs and, beside the weights, 32Gi a GPU. "
            "On CPUs it asks for 2 CPUs and, beside the weights, 8Gi.",
        ),
        example("{requests: {cpu: 8, memory: 64Gi}}"),
    ]
    shared_memory: Annotated[
        MemorySize | None,
        Field(
            default=None,
            description="Size of /dev/shm, which the ranks of a pod talk through; it counts as the pod's memory.",
        ),
        example("16Gi", unit="bytes, with a suffix such as Gi"),
    ]
