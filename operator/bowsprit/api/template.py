"""spec.template: what users add to the pods, and what of a pod is Bowsprit's to decide.

The pod's spec stays open (core/v1 has hundreds of fields). Named here are only the fields that rules look at.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from bowsprit.api.base import LABEL_KEY, LABEL_VALUE, LABELS_SCHEMA, OPEN_OBJECT, RULES, example, quoted, rule
from bowsprit.api.engine import NO_GPUS
from bowsprit.api.names import ENGINE_CONTAINER

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
                    RULES: [NO_GPUS],
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
