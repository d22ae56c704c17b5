"""The live cluster as the CLI reads it: one list of each kind, through the operator's own client.

The kubeconfig is found as kubectl finds it. Only nodes, pods and ModelDeployments are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubernetes.aio.config import ConfigException

from bowsprit.cli.inventory import Inventory
from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.cluster.client import KubeClient, connect
from bowsprit.cluster.errors import ClusterError, NotServed
from bowsprit.cluster.resources import MODEL_DEPLOYMENTS, NODES, PODS, Resource
from bowsprit.inventory.nodes import node_facts
from bowsprit.inventory.pods import pod_facts
from bowsprit.inventory.products import ProductTable
from bowsprit.plan.key import ModelKey

_INSTEAD = "give --inventory FILE, or see that `kubectl get nodes` works here"


@dataclass(frozen=True, slots=True)
class LiveCluster:
    inventory: Inventory
    deployments: Mapping[ModelKey, Mapping[str, Any]]
    """ModelDeployments as they are on the wire; empty when the CRD is not installed."""


def read_live_cluster(products: ProductTable) -> LiveCluster:
    """Raises BadInput when the cluster cannot be read."""
    try:
        return asyncio.run(_read(products))
    except (ClusterError, ConfigException, OSError, TimeoutError) as error:
        words = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise BadInput([Problem(Place("live cluster"), "", f"{words}; {_INSTEAD}")]) from error


async def _read(products: ProductTable) -> LiveCluster:
    client = await connect()
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
