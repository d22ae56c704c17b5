"""The live cluster as the CLI reads it: one list of each kind, through the operator's own client.

The cluster is found as kubectl finds it. Only nodes, pods and ModelDeployments are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bowsprit.cli.inventory import Inventory
from bowsprit.cli.options import ClusterRef
from bowsprit.cli.reaching import cluster_errors
from bowsprit.cluster.client import KubeClient, connect
from bowsprit.cluster.errors import NotServed
from bowsprit.cluster.resources import MODEL_DEPLOYMENTS, NODES, PODS, Resource
from bowsprit.inventory.nodes import node_facts
from bowsprit.inventory.pods import pod_facts
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey

_REFUSED = "see that `kubectl get nodes,pods,mdep -A` works here"
_WITHOUT = "; or give --inventory FILE"


@dataclass(frozen=True, slots=True)
class LiveCluster:
    inventory: Inventory
    deployments: Mapping[ModelKey, Mapping[str, Any]]
    """ModelDeployments as they are on the wire; empty when the CRD is not installed."""


def read_live_cluster(products: ProductTable, cluster: ClusterRef) -> LiveCluster:
    """Raises BadInput when the cluster cannot be read."""
    with cluster_errors(_REFUSED, _WITHOUT):
        return asyncio.run(_read(products, cluster))


async def _read(products: ProductTable, cluster: ClusterRef) -> LiveCluster:
    client = await connect(*cluster)
    try:
        return await cluster_of(client, products)
    finally:
        await client.close()


async def cluster_of(client: KubeClient, products: ProductTable) -> LiveCluster:
    """Everything that the CLI wants to know of a cluster."""
    nodes = [node_facts(node) for node in await _list(client, NODES)]
    pods = [pod_facts(pod) for pod in await _list(client, PODS)]
    try:
        deployments = await _list(client, MODEL_DEPLOYMENTS)
    except NotServed:
        deployments = []
    inventory = Inventory(tuple(nodes), tuple(pods), products)
    return LiveCluster(inventory, {_key_of(each): each for each in deployments})


def _key_of(deployment: Mapping[str, Any]) -> ModelKey:
    return ModelKey(deployment["metadata"]["namespace"], deployment["metadata"]["name"])


async def _list(client: KubeClient, resource: Resource) -> list[dict[str, Any]]:
    return [item async for page in client.pages(resource) for item in page["items"]]
