"""Who a rendered object belongs to.

Every child has one controlling owner, the ModelDeployment: the garbage collector deletes the child with it,
so Bowsprit needs no finalizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bowsprit.api.v1alpha1 import API_VERSION, KIND


@dataclass(frozen=True, slots=True)
class Owner:
    """The ModelDeployment, by what its children need to know of it."""

    name: str
    namespace: str
    uid: str


def owned_metadata(owner: Owner, name: str, labels: dict[str, str]) -> dict[str, Any]:
    """metadata of a child called `name`."""
    return {
        "name": name,
        "namespace": owner.namespace,
        "labels": labels,
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
