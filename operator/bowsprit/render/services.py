"""The Service of a model: one stable address in front of whatever revision serves.

The headless Service that a group of pods finds its head by is LeaderWorkerSet's own (see workload.py).
"""

from __future__ import annotations

from typing import Any

from bowsprit.api.names import HTTP_PORT
from bowsprit.render import labels, names
from bowsprit.render.owner import Owner, owned_metadata


def services(owner: Owner, serving_revision_hash: str) -> list[dict[str, Any]]:
    """Services of a model whose requests go to the head pods of `serving_revision_hash`."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": owned_metadata(
                owner, names.service_name(owner.name), labels.model_labels(owner.name)
            ),
            "spec": {
                "type": "ClusterIP",
                "selector": labels.head_selector(owner.name, serving_revision_hash),
                "ports": [
                    {
                        "name": "http",
                        "port": HTTP_PORT,
                        "targetPort": HTTP_PORT,
                        "protocol": "TCP",
                    }
                ],
            },
        }
    ]
