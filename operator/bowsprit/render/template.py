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
    "resourceClaims": "name",
}
"""Lists that are merged, with the key that says which entries are the same (core/v1 patchMergeKey)."""

_UNITED = "tolerations"
_MERGED_INSIDE = frozenset({"containers", "initContainers"})
_HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})


def merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `patch` on top; neither is changed."""
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
    if isinstance(base, list) and isinstance(value, list):
        if key == _UNITED:
            return [*base, *(entry for entry in value if entry not in base)]
        if key in MERGE_KEYS:
            return _merged_list(
                base, value, MERGE_KEYS[key], inside=merge if key in _MERGED_INSIDE else _second
            )
    return value


def _merged_list(base: list[Any], patch: list[Any], merge_key: str, inside: Any) -> list[Any]:
    merged = {entry[merge_key]: entry for entry in base}
    for entry in patch:
        name = entry[merge_key]
        merged[name] = inside(merged[name], entry) if name in merged else entry
    return list(merged.values())


def _second(_: Any, entry: Any) -> Any:
    return entry
