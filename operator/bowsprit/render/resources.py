"""CPU and memory of every container that Bowsprit writes.

Each states its own requests and limits: a LimitRange would otherwise give engines the limits of a web server,
and a ResourceQuota would refuse the pods. What `spec.engine.resources` says of a resource stands in place of
both of ours.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from bowsprit.api import defaults
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.plan.result import Layout
from bowsprit.render import wishes

_GIB = 2**30

COPYING: dict[str, Any] = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"cpu": "1", "memory": "256Mi"},
}
"""Copies files from one volume to another."""
INSTALLING: dict[str, Any] = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"cpu": "2", "memory": "2Gi"},
}
"""pip, which unpacks some wheels."""

PREFLIGHT: dict[str, dict[str, str]] = {
    "requests": defaults.PREFLIGHT_REQUESTS,
    "limits": {"cpu": "4", "memory": "8Gi"},
}
"""vLLM without a model: what its imports take, and room for a plugin's."""
ENGINE_REQUESTS = {"cpu": "2", "memory": "8Gi"}
"""Of an engine, whatever its GPUs: the smallest machines with a GPU have 4 cores and 16 GiB."""

# Limits are there to be above what any engine needs: threads that compile, pinned buffers, and as many bytes
# again as the weights, which the streamer of object storage may hold at once.
_MOST_CORES_A_GPU = 16
_MOST_GIB_A_GPU = 32
_UNKNOWN_WEIGHTS_GIB = 128
_GIB_ON_CPUS = 8
"""Beside the weights."""


def engine_resources(spec: ModelDeploymentSpec, layout: Layout, weight_bytes: int | None) -> dict[str, Any]:
    """Of the engine container of one pod, the GPUs themselves left out."""
    given = (spec.engine.resources if spec.engine else None) or {}
    if layout.on_cpus:
        return with_users(_on_cpus(layout, weight_bytes), given)
    gpus = layout.gpus_per_pod
    weights = _UNKNOWN_WEIGHTS_GIB if weight_bytes is None else ceil(weight_bytes / layout.gpus / _GIB)
    gib = (_MOST_GIB_A_GPU + ceil(wishes.cpu_offload_gib(spec)) + weights) * gpus
    limits = {"cpu": str(_MOST_CORES_A_GPU * gpus), "memory": f"{gib}Gi"}
    return with_users({"requests": ENGINE_REQUESTS, "limits": limits}, given)


def _on_cpus(layout: Layout, weight_bytes: int | None) -> dict[str, dict[str, str]]:
    """The weights of its stage are in the pod's memory, and vLLM's KV cache beside them."""
    stage = 0 if weight_bytes is None else ceil(weight_bytes / layout.pods / _GIB)
    return {
        "requests": {"cpu": "2", "memory": f"{_GIB_ON_CPUS + stage}Gi"},
        "limits": {"cpu": "64", "memory": f"{_MOST_GIB_A_GPU + 2 * stage}Gi"},
    }


def with_users(ours: dict[str, dict[str, str]], given: dict[str, Any]) -> dict[str, Any]:
    """Ours, but for the resources of which the user says anything at all."""
    said = {name for section in given.values() for name in section}
    return {
        section: {
            **{name: size for name, size in sizes.items() if name not in said},
            **given.get(section, {}),
        }
        for section, sizes in ours.items()
    }
