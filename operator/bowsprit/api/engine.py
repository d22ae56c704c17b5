"""spec.engine and spec.template: the vLLM container and the pod around it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from bowsprit.api.base import (
    ATOMIC,
    LABEL_KEY,
    LABEL_VALUE,
    LABELS_SCHEMA,
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

ENGINE_CONTAINER = "engine"
"""Name of vLLM's container, for `template.spec.containers`."""

_GPU = quoted("(^|[./])(gpu|vgpu|mig-)")
_NO_GPUS = rule(
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
        _NO_GPUS,
        rule(
            f"self.all(name, type(self[name]) == int || string(self[name]).matches({_QUANTITY}))",
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

_OWNED_LABEL = quoted(
    "^(bowsprit[.]dev|leaderworkerset[.]sigs[.]k8s[.]io)/|"
    "^app[.]kubernetes[.]io/(name|instance|component|part-of|managed-by)$"
)
_TEXT: dict[str, Any] = {"type": "string"}
_OBJECTS: dict[str, Any] = {"type": "array", "maxItems": 64, "items": OPEN_OBJECT}
_GROUP_NAMES = "the ranks of a replica find each other by the names that LeaderWorkerSet gives them"

_POD_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "nodeName": (_TEXT, "the plan pins each pod to its node"),
    "schedulingGates": (_OBJECTS, "pods are held and let go by Bowsprit's own gate"),
    "restartPolicy": (_TEXT, "engines always run again, and a group restarts as a whole"),
    "activeDeadlineSeconds": (
        {"type": "integer"},
        "engines run until they are told to stop; use spec.suspend",
    ),
    "hostname": (_TEXT, _GROUP_NAMES),
    "subdomain": (_TEXT, _GROUP_NAMES),
    "affinity": (
        OPEN_OBJECT,
        "the plan chooses the nodes and would be contradicted; use spec.accelerator.nodeSelector",
    ),
    "topologySpreadConstraints": (
        _OBJECTS,
        "the plan chooses the nodes and would be contradicted; use spec.accelerator.nodeSelector",
    ),
    "resourceClaims": (
        _OBJECTS,
        "the plan counts whole GPUs of spec.accelerator.resource and would not see these devices",
    ),
    "resources": (OPEN_OBJECT, "it would bound the pod as a whole; set spec.engine.resources"),
}
"""Of a pod's spec: what Bowsprit decides itself, with its type and why a user's own value would break it."""

CONTAINER_SCHEMA: dict[str, Any] = {
    **OPEN_OBJECT,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 63},
        "image": {"type": "string", "maxLength": 1024},
        "command": {"type": "array", "maxItems": 128, "items": {"type": "string"}},
        "args": {"type": "array", "maxItems": 128, "items": {"type": "string"}},
        "env": {
            "type": "array",
            "maxItems": 128,
            "items": {
                **OPEN_OBJECT,
                "required": ["name"],
                "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 256}},
            },
        },
        "resources": {
            **OPEN_OBJECT,
            "properties": {
                name: {
                    "type": "object",
                    "maxProperties": 16,
                    "additionalProperties": {
                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                        "x-kubernetes-int-or-string": True,
                    },
                    RULES: [_NO_GPUS],
                }
                for name in ("limits", "requests")
            },
        },
    },
}
_ENGINE_FIELDS = {
    "image": "set spec.engine.image",
    "command": "Bowsprit starts vLLM itself; set spec.engine.args",
    "args": "Bowsprit writes the command line; set spec.engine.args",
    "env": "set spec.engine.env",
    "resources": "set spec.engine.resources",
}

TEMPLATE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "metadata": {
            "type": "object",
            "description": "Labels and annotations for the pods.",
            "properties": {
                "labels": {
                    **LABELS_SCHEMA,
                    "description": "Added to the pods' own.",
                    RULES: [
                        rule(
                            f"self.all(key, key.matches({quoted(LABEL_KEY)}) && "
                            f"self[key].matches({quoted(LABEL_VALUE)}))",
                            "must be label keys and values as Kubernetes takes them: letters, digits, '-', '_' and "
                            "'.', at most 63 characters",
                        ),
                        rule(
                            f"self.all(key, !key.matches({_OWNED_LABEL}))",
                            "bowsprit.dev/, leaderworkerset.sigs.k8s.io/ and the app.kubernetes.io/ labels name, "
                            "instance, component, part-of and managed-by are Bowsprit's own: Services find the pods "
                            "by them; choose other keys",
                        ),
                    ],
                },
                "annotations": {
                    "type": "object",
                    "description": "Added to the pods' own.",
                    "maxProperties": 64,
                    "additionalProperties": {"type": "string"},
                },
            },
        },
        "spec": {
            **OPEN_OBJECT,
            "description": "core/v1 PodSpec; lists of named things (containers, volumes, env) are merged by name.",
            "properties": {
                **{name: schema for name, (schema, _) in _POD_FIELDS.items()},
                **{
                    name: {"type": "array", "maxItems": 16, "items": CONTAINER_SCHEMA}
                    for name in ("containers", "initContainers")
                },
            },
            RULES: [
                *(
                    rule(f"!has(self.{name})", f"{name} cannot be set: {why}", f".{name}")
                    for name, (_, why) in _POD_FIELDS.items()
                ),
                *(
                    rule(
                        f"!has(self.containers) || !self.containers.exists(c, c.name == '{ENGINE_CONTAINER}' && "
                        f"has(c.{name}))",
                        f"{name} of the container {ENGINE_CONTAINER} cannot be set here: {cure}",
                        ".containers",
                    )
                    for name, cure in _ENGINE_FIELDS.items()
                ),
            ],
        },
    },
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
            "the planner reads --max-num-batched-tokens, --max-num-seqs, --enforce-eager and --block-size.",
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
            description="CPU, memory and other resources of one engine container; the GPUs come from the plan.",
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


Template = Annotated[
    dict[str, Any] | None,
    WithJsonSchema(TEMPLATE_SCHEMA),
    Field(
        default=None,
        description="Pod template (metadata and spec) that is merged into the pods, containers by name; what you say "
        "wins, except where Bowsprit could not work then, and that is refused.",
    ),
    example("{spec: {priorityClassName: production}}"),
]
