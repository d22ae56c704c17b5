"""Revisions: what the pods of a model are made from, and nothing else.

A revision is a value. Its hash is over the canonical JSON of what the user said, with defaults filled in, so
two specs that mean the same are one revision. What is stored is enough to render the pods again, long after
the spec, the facts or the operator's own defaults have changed: an operator upgrade never rolls a pod.

Replicas, priority, suspend and rollout say how many and in which order, not what runs; they are outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeGuard

from bowsprit.api import defaults
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.facts.model import ModelFacts
from bowsprit.render import labels, names
from bowsprit.render.canonical import canonical_json, short_hash
from bowsprit.render.owner import Owner, owned_metadata
from bowsprit.render.problems import can_be_rendered
from bowsprit.render.quantities import canonical_bytes

RENDER_VERSION = 1
"""Of the way from a revision to pods. A later operator that renders otherwise adds 2 and keeps 1 for what it
finds."""

OUTSIDE = {
    "replicas": "how many replicas run, not what runs in them",
    "priority": "decides who gets scarce GPUs; running pods do not change",
    "suspend": "stops replicas; what they run stays",
    "rollout": "how to change from one revision to another, not a part of either",
    "preflight": "whether the revision is proven first; the pods are the same",
    "model.config": "where the facts are read; what was read is in the revision by its digest",
}
"""Fields of the spec that are no part of a revision, with the reason."""

_HASH_LENGTH = 10


@dataclass(frozen=True)
class Revision:
    hash: str
    number: int
    """Counts up with each new revision of one model, from 1."""
    data: Mapping[str, Any] = field(hash=False)
    """JSON. `spec` with all defaults filled in, `facts` (digest), `renderVersion`, and under `derived` what
    follows from those and is not hashed."""

    @cached_property
    def spec(self) -> ModelDeploymentSpec:
        """The revision's part of the spec, every default spelled out."""
        return ModelDeploymentSpec.model_validate(self.data["spec"])

    @property
    def weight_bytes(self) -> int | None:
        """Bytes of the checkpoint; None when the facts are not known."""
        number: int | None = self.data["derived"].get("weightBytes")
        return number

    @property
    def images(self) -> Mapping[str, str]:
        """Images by container: the runtime's, and those that are pinned by the digest that preflight ran."""
        found: Mapping[str, str] = self.data["derived"].get("images", {})
        return found


def revision_of(
    spec: ModelDeploymentSpec,
    facts: ModelFacts | None,
    name: str,
    images: Mapping[str, str],
    number: int = 1,
) -> Revision:
    """The revision that a spec asks for. `name` is the ModelDeployment's: the served name when none is
    given; `images` are kept as Revision.images."""
    hashed: dict[str, Any] = {
        "renderVersion": RENDER_VERSION,
        "spec": canonical_spec(spec, name),
        "facts": facts.digest if facts else "",
    }
    derived: dict[str, Any] = {"images": dict(images)}
    if facts:
        derived["weightBytes"] = facts.weight_bytes
    return Revision(short_hash(hashed, _HASH_LENGTH), number, {**hashed, "derived": derived})


def target_revision(
    spec: ModelDeploymentSpec,
    facts: ModelFacts | None,
    name: str,
    images: Mapping[str, str],
    known: Iterable[Revision],
) -> Revision:
    """The stored revision that means the same as the spec, or a new one with the next number.

    The stored one wins as it is, figures and all: ControllerRevision data cannot be changed.
    """
    stored = sorted(known, key=lambda revision: revision.number)
    wanted = revision_of(spec, facts, name, images, number=stored[-1].number + 1 if stored else 1)
    return next((revision for revision in stored if revision.hash == wanted.hash), wanted)


def canonical_spec(spec: ModelDeploymentSpec, name: str) -> dict[str, Any]:
    """The revision's part of the spec on the wire, defaults filled in, one spelling for one meaning."""
    data = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    for path in OUTSIDE:
        *parents, leaf = path.split(".")
        section = data
        for parent in parents:
            section = section[parent]
        section.pop(leaf, None)
    data["model"] = {"name": name, **data["model"]}
    data["engine"] = {
        "image": defaults.ENGINE_IMAGE,
        "sharedMemory": defaults.SHARED_MEMORY,
        **data.get("engine", {}),
    }
    data["accelerator"] = {"resource": defaults.ACCELERATOR_RESOURCE, **data.get("accelerator", {})}
    data["capacity"] = {
        "concurrency": defaults.CONCURRENCY,
        "gpuMemoryUtilization": defaults.GPU_MEMORY_UTILIZATION,
        "kvCacheDtype": defaults.KV_CACHE_DTYPE,
        "objective": defaults.OBJECTIVE,
        **data.get("capacity", {}),
    }
    _settle_quantities(data)
    _settle_orders(data)
    settled = {
        key: _without_empty(value) if isinstance(value, dict) else value for key, value in data.items()
    }
    return _without_empty(settled)


def _settle_quantities(data: dict[str, Any]) -> None:
    data["engine"]["sharedMemory"] = canonical_bytes(data["engine"]["sharedMemory"])
    if "cpuOffload" in data["capacity"]:
        data["capacity"]["cpuOffload"] = canonical_bytes(data["capacity"]["cpuOffload"])


def _settle_orders(data: dict[str, Any]) -> None:
    """Lists whose order means nothing are sorted."""
    accelerator = data["accelerator"]
    if "products" in accelerator:
        accelerator["products"] = sorted(set(accelerator["products"]))
    if "tolerations" in accelerator:
        accelerator["tolerations"] = sorted(accelerator["tolerations"], key=canonical_json)
    for plugin in data.get("plugins", []):
        if "image" in plugin:
            plugin.setdefault("path", defaults.PLUGIN_PATH)
        if "hashes" in plugin:
            plugin["hashes"] = sorted(set(plugin["hashes"]))
            if not plugin["hashes"]:
                del plugin["hashes"]


def _without_empty(section: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value not in ({}, [])}


def _derived(data: Mapping[str, Any]) -> dict[str, Any]:
    """What can be read of it."""
    stored = data.get("derived")
    known = stored if isinstance(stored, Mapping) else {}
    weight_bytes, images = known.get("weightBytes"), known.get("images")
    derived: dict[str, Any] = {"images": dict(images) if _is_texts(images) else {}}
    if isinstance(weight_bytes, int):
        derived["weightBytes"] = weight_bytes
    return derived


def _is_texts(value: object) -> TypeGuard[Mapping[str, str]]:
    return isinstance(value, Mapping) and all(
        isinstance(text, str) for pair in value.items() for text in pair
    )


def to_controller_revision(revision: Revision, owner: Owner) -> dict[str, Any]:
    """The apps/v1 ControllerRevision that keeps a revision."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": owned_metadata(
            owner,
            names.revision_name(owner.name, revision.hash),
            labels.revision_labels(owner.name, revision.hash),
        ),
        "data": dict(revision.data),
        "revision": revision.number,
    }


def from_controller_revision(manifest: Mapping[str, Any]) -> Revision | None:
    """The revision that a ControllerRevision keeps; None when it is not one of ours or is damaged.

    The hash is computed anew from the data, so edited labels or names do no harm.
    """
    data, number = manifest.get("data"), manifest.get("revision")
    if not isinstance(data, Mapping) or not isinstance(number, int):
        return None
    if data.get("renderVersion") != RENDER_VERSION or not isinstance(data.get("facts"), str):
        return None
    hashed = {key: value for key, value in data.items() if key != "derived"}
    try:
        revision = Revision(short_hash(hashed, _HASH_LENGTH), number, {**hashed, "derived": _derived(data)})
        return revision if can_be_rendered(revision.spec) else None
    except (KeyError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return None
