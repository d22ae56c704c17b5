"""Revisions: what the pods of a model are made from, and nothing else.

A revision is a value. Its hash is over the canonical JSON of what the user said, with defaults filled in, so
two specs that mean the same are one revision. What is stored is enough to render the pods again, and to plan
them, long after the spec, the facts or the operator's own defaults have changed: an operator upgrade never
rolls a pod. What makes a revision is decided in docs/decisions/0016-what-makes-a-revision.md.

Replicas, priority, suspend and rollout say how many and in which order, not what runs; they are outside. The
self-check in rollout is inside: what serves has passed it.
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
from bowsprit.render.wishes import is_required

RENDER_VERSION = 1
"""Of the way from a revision to pods. A later operator that renders otherwise adds 2 and keeps 1 for what it
finds."""

OUTSIDE = {
    "replicas": "how many replicas run, not what runs in them",
    "priority": "decides who gets scarce GPUs; running pods do not change",
    "suspend": "stops replicas; what they run stays",
    **{
        f"rollout.{field}": "how to change from one revision to another, not a part of either"
        for field in ("mode", "revisionHistoryLimit", "progressDeadlineSeconds", "rollbackOnFailure")
    },
    "preflight": "whether the revision is proven first; the pods are the same",
    "model.config": "where facts are read; a config.json of the user's is in the revision by its digest",
}
"""Fields of the spec that are no part of a revision, with the reason."""

_HASH_LENGTH = 10


@dataclass(frozen=True)
class Revision:
    hash: str
    number: int
    """Counts up with each new revision of one model, from 1."""
    data: Mapping[str, Any] = field(hash=False)
    """JSON. `spec` with all defaults filled in, `facts` (digest of the user's config.json, when that is what
    they are read from), `renderVersion`, and under `derived` what is not hashed: `said`, the spec without the
    defaults; `facts`, what was told of the model; `weightBytes`; `images`."""

    @cached_property
    def spec(self) -> ModelDeploymentSpec:
        """The revision's part of the spec, every default spelled out."""
        return ModelDeploymentSpec.model_validate(self.data["spec"])

    @cached_property
    def said(self) -> ModelDeploymentSpec:
        """The revision's part of the spec as the user wrote it; with the defaults of its day where that was
        not kept."""
        try:
            return ModelDeploymentSpec.model_validate(self._derived["said"])
        except (KeyError, ValueError):  # pydantic's ValidationError is a ValueError
            return self.spec

    @cached_property
    def words(self) -> Mapping[str, Any]:
        """`said`, in one spelling for one meaning."""
        return words(self.said)

    @property
    def told(self) -> Mapping[str, Any]:
        """What was told of the model when the revision was made (ModelFacts.told)."""
        found = self._derived.get("facts")
        return found if isinstance(found, Mapping) else {}

    @property
    def weight_bytes(self) -> int | None:
        """Bytes of the checkpoint; None when the facts are not known."""
        number = self._derived.get("weightBytes")
        return number if isinstance(number, int) else None

    @property
    def images(self) -> Mapping[str, str]:
        """Images by container: the runtime's, and those that are pinned by the digest that preflight ran."""
        found = self._derived.get("images")
        return found if _is_texts(found) else {}

    @property
    def _derived(self) -> Mapping[str, Any]:
        found = self.data["derived"]
        return found if isinstance(found, Mapping) else {}


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
        "facts": facts.users_config if facts else "",
    }
    derived: dict[str, Any] = {"images": dict(images), "said": words(spec)}
    if facts:
        derived["weightBytes"] = facts.weight_bytes
    if facts and facts.told:
        derived["facts"] = dict(facts.told)
    return Revision(short_hash(hashed, _HASH_LENGTH), number, {**hashed, "derived": derived})


def target_revision(
    spec: ModelDeploymentSpec,
    facts: ModelFacts | None,
    name: str,
    images: Mapping[str, str],
    known: Iterable[Revision],
) -> Revision:
    """The stored revision that the spec asks for, or a new one with the next number.

    The stored one wins as it is, defaults, images, figures and all: neither another operator nor another
    measure of the model makes a revision.
    """
    stored = sorted(known, key=lambda revision: revision.number)
    alike = [each for each in asked_before(spec, name, stored) if _same_config(each, spec, facts)]
    if alike:
        return alike[-1]
    return revision_of(spec, facts, name, images, number=stored[-1].number + 1 if stored else 1)


def asked_before(spec: ModelDeploymentSpec, name: str, known: Iterable[Revision]) -> list[Revision]:
    """Those that the same words asked for, whatever the defaults were, or other words of the same meaning;
    the newest last."""
    said, full = words(spec), canonical_spec(spec, name)
    alike = (each for each in known if each.words == said or each.data["spec"] == full)
    return sorted(alike, key=lambda revision: revision.number)


def _same_config(stored: Revision, spec: ModelDeploymentSpec, facts: ModelFacts | None) -> bool:
    """Only a change of the user's own config.json counts. One that helps out where preflight could not tell
    the model's is none."""
    used, before = facts.users_config if facts else "", stored.data["facts"]
    return not used or used == before or (is_required(spec) and not before)


def canonical_spec(spec: ModelDeploymentSpec, name: str) -> dict[str, Any]:
    """The revision's part of the spec on the wire, defaults filled in, one spelling for one meaning."""
    data = _inside(spec)
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
    for plugin in data.get("plugins", []):
        if "image" in plugin:
            plugin.setdefault("path", defaults.PLUGIN_PATH)
    if "verify" in data.get("rollout", {}):
        checked = {"maxTokens": defaults.VERIFY_MAX_TOKENS, "path": defaults.VERIFY_PATH}
        data["rollout"]["verify"] = {**checked, **data["rollout"]["verify"]}
    return _settled(data)


def words(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """The revision's part of the spec on the wire, one spelling for one meaning, and nothing filled in."""
    return _settled(_inside(spec))


def _inside(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """Without what is outside."""
    data = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    for path in OUTSIDE:
        *parents, leaf = path.split(".")
        section = data
        for parent in parents:
            section = section.get(parent, {})
        section.pop(leaf, None)
    return data


def _settled(data: dict[str, Any]) -> dict[str, Any]:
    _settle_quantities(data)
    _settle_orders(data)
    settled = {
        key: _without_empty(value) if isinstance(value, dict) else value for key, value in data.items()
    }
    return _without_empty(settled)


def _settle_quantities(data: dict[str, Any]) -> None:
    for section, name in (("engine", "sharedMemory"), ("capacity", "cpuOffload")):
        if name in data.get(section, {}):
            data[section][name] = canonical_bytes(data[section][name])


def _settle_orders(data: dict[str, Any]) -> None:
    """Lists whose order means nothing are sorted."""
    accelerator = data.get("accelerator", {})
    if "products" in accelerator:
        accelerator["products"] = sorted(set(accelerator["products"]))
    if "tolerations" in accelerator:
        accelerator["tolerations"] = sorted(accelerator["tolerations"], key=canonical_json)
    for plugin in data.get("plugins", []):
        if "hashes" in plugin:
            plugin["hashes"] = sorted(set(plugin["hashes"]))
            if not plugin["hashes"]:
                del plugin["hashes"]


def _without_empty(section: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value not in ({}, [])}


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
        whole = {**hashed, "derived": data.get("derived")}
        revision = Revision(short_hash(hashed, _HASH_LENGTH), number, whole)
        return revision if can_be_rendered(revision.spec) else None
    except (KeyError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return None
