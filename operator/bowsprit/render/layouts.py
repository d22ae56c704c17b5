"""A Layout as data, and back: written on each workload so that nothing has to be remembered elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from bowsprit.plan.result import Layout
from bowsprit.render.canonical import short_hash


def layout_data(layout: Layout) -> dict[str, Any]:
    """JSON form of a layout."""
    return {
        "product": layout.product,
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "gpusPerPod": layout.gpus_per_pod,
        "layerPartition": list(layout.layer_partition),
    }


def layout_key(layout: Layout) -> str:
    """Short and readable, and a valid label value: `tp1-pp5-3f9c2a`."""
    return f"tp{layout.tensor}-pp{layout.pipeline}-{short_hash(layout_data(layout), 6)}"


def parse_layout(text: str) -> Layout | None:
    """The layout that `layout_data` wrote; None for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, Mapping) or not isinstance(data.get("product"), str):
        return None
    tensor, pipeline, gpus_per_pod = data.get("tensor"), data.get("pipeline"), data.get("gpusPerPod")
    partition = data.get("layerPartition")
    if not (_is_count(tensor) and _is_count(pipeline) and _is_count(gpus_per_pod)):
        return None
    if not isinstance(partition, list) or not all(_is_count(layers) for layers in partition):
        return None
    return Layout(data["product"], tensor, pipeline, gpus_per_pod, tuple(partition))


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
