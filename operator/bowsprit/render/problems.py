"""What the schema cannot see: it leaves the pod template open, so what cannot be merged is found here.

A spec with problems is neither planned nor rendered; what runs keeps running.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.render.template import MERGE_KEYS

_OBJECTS = frozenset({"metadata", "spec", "labels", "annotations", "nodeSelector", "resources"})
_CONTAINERS = ("containers", "initContainers")
_DURATION = "terminationGracePeriodSeconds"


def problems(spec: ModelDeploymentSpec) -> tuple[str, ...]:
    """What is wrong with a spec, each as `field: what is wrong and what to do`."""
    template = spec.template or {}
    found = [*_unmergeable(template, "spec.template")]
    for section in ("metadata", "spec"):
        if isinstance(template.get(section), Mapping):
            found += _unmergeable(template[section], f"spec.template.{section}")
    pod = template.get("spec")
    for kind, containers in pod.items() if isinstance(pod, Mapping) else ():
        if kind in _CONTAINERS and _has_keys(containers, "name"):
            for container in containers:
                found += _unmergeable(container, f"spec.template.spec.{kind}[{container['name']}]")
    return tuple(found)


def _unmergeable(section: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in section.items():
        fault = _fault(key, value)
        if fault:
            yield f"{path}.{key}: {fault}"


def _fault(key: str, value: Any) -> str | None:
    if key.startswith("$"):
        return "patch directives are not supported: write the fields themselves (null deletes one)"
    if key in MERGE_KEYS and not _has_keys(value, MERGE_KEYS[key]):
        return f"must be a list of objects, each with {MERGE_KEYS[key]}: entries are merged by it"
    if key == "tolerations" and not _is_list_of_objects(value):
        return "must be a list of tolerations: add them in spec.accelerator.tolerations"
    if key in _OBJECTS and not isinstance(value, Mapping):
        return "must be an object: leave it out to keep what Bowsprit sets"
    if key == _DURATION and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        return "must be a number of seconds, 0 or more"
    return None


def _has_keys(value: Any, merge_key: str) -> bool:
    wanted = int if merge_key == "containerPort" else str
    return _is_list_of_objects(value) and all(isinstance(entry.get(merge_key), wanted) for entry in value)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
