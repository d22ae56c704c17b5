"""Pinning a gated pod to its node, in one patch: the node goes in and the gate comes off together, or neither
does.

Kubernetes lets a gated pod's required node affinity only grow: the pin is added to every existing term (terms
are alternatives), and terms without any expression, which match no node, have to stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bowsprit.render.names import PLACEMENT_GATE

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pin_patch(pod: Mapping[str, Any], node_name: str) -> list[dict[str, Any]]:
    """JSON patch (RFC 6902) that pins `pod` and lifts Bowsprit's gate and no other; empty when it is not
    gated by us.

    The patch fails as a whole (HTTP 422) when the pod has been replaced by one of the same name, or its gates
    have changed.
    """
    spec = pod["spec"]
    gates = [gate.get("name") for gate in spec.get("schedulingGates") or []]
    if PLACEMENT_GATE not in gates:
        return []
    gate = f"/spec/schedulingGates/{gates.index(PLACEMENT_GATE)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": f"{gate}/name", "value": PLACEMENT_GATE},
        {"op": "add", "path": "/spec/affinity", "value": _pinned(spec.get("affinity") or {}, node_name)},
        {"op": "remove", "path": gate},
    ]


def _pinned(affinity: Mapping[str, Any], node_name: str) -> dict[str, Any]:
    pin = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    node_affinity = affinity.get("nodeAffinity") or {}
    terms = (node_affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    pinned = [
        {**term, "matchFields": [*(term.get("matchFields") or []), pin]} if any(term.values()) else term
        for term in terms
    ]
    required = {"nodeSelectorTerms": pinned or [{"matchFields": [pin]}]}
    return {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: required}}
