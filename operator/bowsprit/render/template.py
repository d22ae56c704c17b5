"""Merging the user's pod template into a rendered one: Kubernetes' strategic merge, as far as pods need it.

Maps are merged key by key, null deletes, lists with a merge key are merged by it, and every other list is
replaced. Where an object may hold one of several alternatives (a volume's source, a variable's value, a
probe's handler), the user's alternative replaces ours instead of standing beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "schedulingGates": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
}
"""Lists that are merged, with the key that says which entries are the same (core/v1 patchMergeKey)."""

_MERGED_INSIDE = frozenset({"containers", "initContainers", "ports"})
_UNITED = "tolerations"
_HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})


def merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `patch` on top; neither is changed. The patch has to be free of problems()."""
    merged = dict(base)
    if _HANDLERS & patch.keys():
        merged = {key: value for key, value in merged.items() if key not in _HANDLERS or key in patch}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged_value(key, merged.get(key), value)
    return merged


def _merged_value(key: str, base: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return merge(base if isinstance(base, Mapping) else {}, value)
    if not isinstance(base, list) or not isinstance(value, list):
        return value
    if key == _UNITED:
        return [*base, *(entry for entry in value if entry not in base)]
    return _merged_list(key, base, value) if key in MERGE_KEYS else value


def _merged_list(key: str, base: list[Any], patch: list[Any]) -> list[Any]:
    merge_key = MERGE_KEYS[key]
    merged = {entry[merge_key]: entry for entry in base}
    for entry in patch:
        name = entry[merge_key]
        merged[name] = merge(merged.get(name, {}), entry) if key in _MERGED_INSIDE else entry
    return list(merged.values())
