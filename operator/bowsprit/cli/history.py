"""`bowsprit history`: the revisions of a model, which of them serves, and which is asked for."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from bowsprit.cli.options import ClusterRef
from bowsprit.cli.reaching import cluster_errors
from bowsprit.cli.screen import table
from bowsprit.cli.subjects import not_found
from bowsprit.cluster.client import KubeClient, connect
from bowsprit.cluster.errors import NotFound
from bowsprit.cluster.resources import CONTROLLER_REVISIONS, MODEL_DEPLOYMENTS, Resource
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import Layout
from bowsprit.render.history import KeptRevision, kept_revisions
from bowsprit.render.labels import MODEL
from bowsprit.render.layouts import layout_data
from bowsprit.render.owner import Owner
from bowsprit.status.observed import Failed
from bowsprit.status.replicas import replicas_from_status
from bowsprit.status.revisions import recorded_failure, recorded_serving, recorded_target

_DIGEST = re.compile(r"(@sha256:[0-9a-f]{12})[0-9a-f]{52}")


@dataclass(frozen=True, slots=True)
class History:
    key: ModelKey
    revisions: tuple[KeptRevision, ...]
    """The oldest first."""
    status: Mapping[str, Any]
    """Of the ModelDeployment."""

    @property
    def serving(self) -> str | None:
        """Hash of the revision that serves, or did last; None until one has served."""
        return recorded_serving(self.status)

    @property
    def target(self) -> str | None:
        """Hash of the revision that the spec asks for; None while it is not known."""
        return recorded_target(self.status)

    def failure(self, revision: KeptRevision) -> Failed | None:
        """Why it was given up; None when it was not."""
        failed = recorded_failure(self.status)
        return failed if failed is not None and failed.revision == revision.hash else None

    def layouts(self, revision: KeptRevision) -> list[Layout]:
        """Of the replicas that it is planned with or has, one a replica."""
        recorded = replicas_from_status(self.status)
        return [each.replica.layout for each in recorded if each.revision == revision.hash]


def read_history(cluster: ClusterRef, namespace: str, name: str) -> History:
    """Raises BadInput when the cluster cannot be read, or has no such model."""
    with cluster_errors(f"see that `kubectl get mdep,controllerrevisions -n {namespace}` works here"):
        return asyncio.run(_read(cluster, ModelKey(namespace, name)))


async def _read(cluster: ClusterRef, key: ModelKey) -> History:
    client = await connect(*cluster)
    try:
        return await history_of(client, key)
    finally:
        await client.close()


async def history_of(client: KubeClient, key: ModelKey) -> History:
    try:
        deployment = await client.get(MODEL_DEPLOYMENTS, key.namespace, key.name)
    except NotFound:
        others = await _list(client, MODEL_DEPLOYMENTS, key.namespace)
        known = [ModelKey(key.namespace, each["metadata"]["name"]) for each in others]
        raise not_found(key, known, "the live cluster") from None
    manifests = await _list(client, CONTROLLER_REVISIONS, key.namespace, f"{MODEL}={key.name}")
    owner = Owner(key.name, key.namespace, deployment["metadata"]["uid"])
    return History(key, kept_revisions(manifests, owner), deployment.get("status") or {})


async def _list(
    client: KubeClient, resource: Resource, namespace: str, selector: str | None = None
) -> list[dict[str, Any]]:
    pages = client.pages(resource, namespace=namespace, selector=selector)
    return [item async for page in pages for item in page["items"]]


def history_data(history: History) -> dict[str, Any]:
    """The JSON of `-o json`, which scripts read."""
    revisions = [_revision_data(history, each) for each in history.revisions]
    return {"namespace": history.key.namespace, "name": history.key.name, "revisions": revisions}


def _revision_data(history: History, revision: KeptRevision) -> dict[str, Any]:
    layouts, failure = Counter(history.layouts(revision)), history.failure(revision)
    return {
        "number": revision.number,
        "hash": revision.hash,
        "created": revision.created,
        "serving": revision.hash == history.serving,
        "target": revision.hash == history.target,
        "failure": failure and asdict(failure),
        "layouts": [{**layout_data(each), "replicas": replicas} for each, replicas in layouts.items()],
        "images": revision.images,
        "factsDigest": revision.facts_digest,
        "facts": revision.facts,
        "weightBytes": revision.weight_bytes,
        "renderVersion": revision.data.get("renderVersion"),
        "spec": revision.spec,
    }


def history_parts(history: History) -> Iterator[RenderableType]:
    """For people: a line for each revision."""
    key = history.key
    if history.revisions:
        columns = ("REVISION", "HASH", "CREATED", "STATE", "LAYOUTS", "MODEL", "OVERRIDE")
        rows = [_row(history, each) for each in history.revisions]
        yield table((*columns, "PLUGINS", "ENGINE", "FACTS"), rows)
    if history.target not in {each.hash for each in history.revisions}:
        if history.revisions:
            yield ""
        yield Text(
            f"The revision that the spec of {key} asks for is not there yet; why: "
            f"bowsprit explain {key.name} -n {key.namespace}",
            style="yellow",
        )


def _row(history: History, revision: KeptRevision) -> tuple[str | Text, ...]:
    spec, images = revision.spec, revision.images
    failure = history.failure(revision)
    state = ", ".join(
        [
            *(["serving"] if revision.hash == history.serving else []),
            *(["asked for"] if revision.hash == history.target else []),
            *([f"failed: {failure.reason}"] if failure else []),
        ]
    )
    layouts = Counter(map(str, history.layouts(revision)))
    plugins = [
        images.get(f"plugin-{index}") or str(plugin.get("requirement", "?"))
        for index, plugin in enumerate(spec.get("plugins") or ())
    ]
    return (
        str(revision.number),
        revision.hash,
        revision.created,
        Text(state or "-", "red" if failure else "green" if "serving" in state else ""),
        ", ".join(f"{replicas} x {layout}" for layout, replicas in layouts.items()) or "-",
        (spec.get("model") or {}).get("uri", "-"),
        (spec.get("architecture") or {}).get("override", "-"),
        ", ".join(map(_short, plugins)) or "-",
        _short(images.get("engine", "-")),
        revision.facts_digest or "-",
    )


def _short(image: str) -> str:
    """With the first 12 digits of its digest, as container tools show it."""
    return _DIGEST.sub(r"\1", image)
