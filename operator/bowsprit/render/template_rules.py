"""What a user's pod template may not say, because the plan, the Service or the engine would break.

`review` returns the template without those parts, so that rendering cannot go wrong, and a problem for each
of them, so that the user learns of it before anything is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bowsprit.api.v1alpha1 import AcceleratorResource, ModelDeploymentSpec
from bowsprit.render import labels, names
from bowsprit.render.template import MERGE_KEYS

OWNED_ENV = {
    "BOWSPRIT_LAYOUT": "the plan sets it",
    "BOWSPRIT_PLUGINS": "plugins sets it",
    "LWS_GROUP_SIZE": "LeaderWorkerSet sets it",
    "LWS_LEADER_ADDRESS": "LeaderWorkerSet sets it",
    "LWS_WORKER_INDEX": "LeaderWorkerSet sets it",
    "VLLM_HOST_IP": "it is each pod's own address",
    "VLLM_PLUGINS": "name entry points in plugins[].entryPoints",
    "VLLM_PP_LAYER_PARTITION": "use parallelism.layerPartition",
}
"""Variables that users cannot set, and why or what to do instead."""

GPU_RESOURCES = frozenset(resource.value for resource in AcceleratorResource)

_REFUSED_IN_SPEC = {
    "nodeName": "the plan chooses the nodes; use accelerator.nodeSelector to narrow them",
    "restartPolicy": "engines are restarted always",
    "hostname": "LeaderWorkerSet names the pods",
    "subdomain": "LeaderWorkerSet sets it",
    "ephemeralContainers": "a pod template cannot have them",
}
_REFUSED_IN_ENGINE = {
    "args": "use engine.args",
    "command": "the engine is started by Bowsprit; use engine.args and engine.env",
    "image": "use engine.image",
}
_NEVER_NULL = frozenset({*MERGE_KEYS, "tolerations", "resources", "limits", "terminationGracePeriodSeconds"})


@dataclass(slots=True)
class _Review:
    problems: list[str] = field(default_factory=list)
    """Each `field: what is wrong and what to do`."""

    def refuse(self, path: str, message: str) -> None:
        self.problems.append(f"{path}: {message}")


def review(template: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The part of a template that is merged into the pods, and what is wrong with the rest."""
    found = _Review()
    accepted: dict[str, Any] = {}
    for key, value in template.items():
        path = f"template.{key}"
        if key not in ("metadata", "spec"):
            found.refuse(path, "a pod template has metadata and spec only")
        elif not isinstance(value, Mapping):
            found.refuse(path, "must be an object")
        else:
            accepted[key] = _metadata(value, found) if key == "metadata" else _spec(value, found)
    return accepted, found.problems


def template_problems(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """What the user's template says that cannot be, each as `field: what is wrong and what to do`."""
    return tuple(review(spec.template or {})[1])


def _owned_env_problems(variables: object, path: str) -> Iterator[str]:
    """Problems of a list of core/v1 EnvVar."""
    for index, variable in enumerate(variables if isinstance(variables, list) else []):
        name = variable.get("name") if isinstance(variable, Mapping) else None
        if not isinstance(name, str) or not name:
            yield f"{path}[{index}]: must have a name"
        elif name in OWNED_ENV:
            yield f"{path}[{index}]: {name} cannot be set here: {OWNED_ENV[name]}"


def _metadata(metadata: Mapping[str, Any], found: _Review) -> dict[str, Any]:
    accepted: dict[str, Any] = {}
    for key, entries in metadata.items():
        path = f"template.metadata.{key}"
        if key not in ("labels", "annotations"):
            found.refuse(path, "only labels and annotations can be set on pods")
        elif not isinstance(entries, Mapping):
            found.refuse(path, "must be an object")
        else:
            accepted[key] = {}
            for name, value in entries.items():
                if key == "labels" and name in labels.RESERVED:
                    found.refuse(path, f"{name} is Bowsprit's own label; choose another name")
                elif not isinstance(value, str):
                    found.refuse(path, f"the value of {name} must be a string; put it in quotes")
                else:
                    accepted[key][name] = value
    return accepted


def _spec(spec: Mapping[str, Any], found: _Review) -> dict[str, Any]:
    path = "template.spec"
    mergeable = _mergeable(spec, path, found)
    accepted = {key: value for key, value in mergeable.items() if _allowed(key, value, path, found)}
    for kind in {"containers", "initContainers"} & accepted.keys():
        at = f"{path}.{kind}"
        accepted[kind] = [_container(each, f"{at}[{each['name']}]", found) for each in accepted[kind]]
    return accepted


def _allowed(key: str, value: Any, path: str, found: _Review) -> bool:
    if key not in _REFUSED_IN_SPEC or (key, value) == ("restartPolicy", "Always"):
        return True
    found.refuse(f"{path}.{key}", f"cannot be set: {_REFUSED_IN_SPEC[key]}")
    return False


def _container(container: Mapping[str, Any], path: str, found: _Review) -> dict[str, Any]:
    accepted = _mergeable(container, path, found)
    if container["name"] == names.ENGINE_CONTAINER:
        for key, cure in _REFUSED_IN_ENGINE.items():
            if accepted.pop(key, None) is not None:
                found.refuse(f"{path}.{key}", f"cannot be set here: {cure}")
        problems = list(_owned_env_problems(accepted.get("env"), f"{path}.env"))
        found.problems += problems
        if problems:
            accepted["env"] = [variable for variable in accepted["env"] if variable["name"] not in OWNED_ENV]
    if "resources" in accepted:
        accepted["resources"] = _resources_without_gpus(accepted["resources"], f"{path}.resources", found)
    return accepted


def _resources_without_gpus(resources: Any, path: str, found: _Review) -> dict[str, Any]:
    """core/v1 ResourceRequirements without GPUs, which only the plan gives."""
    if not isinstance(resources, Mapping):
        found.refuse(path, "must be an object with requests and limits")
        return {}
    accepted = dict(resources)
    for kind in ("requests", "limits"):
        amounts = resources.get(kind)
        if amounts is None:
            accepted.pop(kind, None)
        elif not isinstance(amounts, Mapping):
            found.refuse(f"{path}.{kind}", "must be an object")
            del accepted[kind]
        else:
            for resource in sorted(GPU_RESOURCES & amounts.keys()):
                found.refuse(f"{path}.{kind}", f"{resource} comes from the plan; use parallelism to fix it")
            accepted[kind] = {key: value for key, value in amounts.items() if key not in GPU_RESOURCES}
    return accepted


def _mergeable(section: Mapping[str, Any], path: str, found: _Review) -> dict[str, Any]:
    """The fields of an object that can be merged: lists that have a merge key hold objects with that key."""
    accepted: dict[str, Any] = {}
    for key, value in section.items():
        if key.startswith("$"):
            found.refuse(f"{path}.{key}", "patch directives are not supported; null deletes a field")
        elif value is None and key in _NEVER_NULL:
            found.refuse(f"{path}.{key}", "cannot be deleted; leave it out")
        elif key in MERGE_KEYS and not _has_keys(value, MERGE_KEYS[key]):
            found.refuse(f"{path}.{key}", f"must be a list of objects, each with {MERGE_KEYS[key]}")
        elif key == "tolerations" and not _is_list_of_objects(value):
            found.refuse(f"{path}.{key}", "must be a list of tolerations")
        elif key in _OBJECTS and not isinstance(value, Mapping):
            found.refuse(f"{path}.{key}", "must be an object")
        else:
            accepted[key] = value
    return accepted


_OBJECTS = frozenset({"nodeSelector", "affinity"})


def _has_keys(value: Any, merge_key: str) -> bool:
    wanted = int if merge_key == "containerPort" else str
    return _is_list_of_objects(value) and all(isinstance(entry.get(merge_key), wanted) for entry in value)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
