"""What a model was asked to be before: its revisions as the cluster keeps them, for people who look back.

Nothing is rendered from them here, so those of an older or a newer way of rendering count as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bowsprit.api import defaults
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.facts.config import CONFIG, MAX_BYTES
from bowsprit.facts.packing import unpacked
from bowsprit.plan.result import Layout
from bowsprit.render import names
from bowsprit.render.canonical import short_hash
from bowsprit.render.layouts import layout_data
from bowsprit.render.owner import Owner
from bowsprit.render.surroundings import images_of

_DIGEST_LENGTH = 10
SHORTEST_HASH = 4
"""Characters from which on the beginning of a hash names a revision."""


class UnknownRevision(LookupError):
    """No revision, or more than one, is called so; the message names those that there are."""


@dataclass(frozen=True, slots=True)
class KeptRevision:
    """A ControllerRevision of a model."""

    number: int
    hash: str
    created: str
    """RFC 3339."""
    data: Mapping[str, Any] = field(hash=False)
    """As Revision.data, of whatever version."""

    def __str__(self) -> str:
        return f"{self.number} ({self.hash})"

    @property
    def spec(self) -> Mapping[str, Any]:
        return _mapping(self.data.get("spec"))

    @property
    def images(self) -> dict[str, str]:
        """Image by container: by the digest that preflight ran where there is one, else as the spec names
        it."""
        pinned = _mapping(self._derived.get("images"))
        try:
            spec = ModelDeploymentSpec.model_validate(self.spec)
        except ValueError:  # pydantic's ValidationError, for the spec of another version
            return dict(pinned)
        return {**images_of(spec, defaults.RUNTIME_IMAGE), **pinned}

    @property
    def weight_bytes(self) -> int | None:
        """Of the checkpoint; None when it was not known."""
        number = self._derived.get("weightBytes")
        return number if isinstance(number, int) else None

    @property
    def facts(self) -> dict[str, Any]:
        """What was told of the model when the revision was made, with config.json as it is."""
        told = dict(_mapping(self._derived.get("facts")))
        config = unpacked(told.get(CONFIG), MAX_BYTES)
        try:
            return told if config is None else {**told, CONFIG: json.loads(config)}
        except ValueError:
            return told

    @property
    def facts_digest(self) -> str:
        """The same for the same facts; "" when nothing was told."""
        known = [self.data.get("facts") or "", self.facts]
        return short_hash(known, _DIGEST_LENGTH) if any(known) else ""

    @property
    def _derived(self) -> Mapping[str, Any]:
        return _mapping(self.data.get("derived"))


def kept_revisions(manifests: Iterable[Mapping[str, Any]], owner: Owner) -> tuple[KeptRevision, ...]:
    """The owner's among the ControllerRevisions of its namespace, the oldest first.

    StatefulSets of its workloads keep revisions of their own, with the labels of their pods.
    """
    found = (_kept(each, owner) for each in manifests if _belongs(each, owner))
    return tuple(sorted(found, key=lambda each: (each.number, each.hash)))


def revision_called(called: str, kept: Sequence[KeptRevision]) -> KeptRevision:
    """The revision of that number, or whose hash is or begins so. A number goes before a hash."""
    for matching in (
        [each for each in kept if called == str(each.number)],
        [each for each in kept if len(called) >= SHORTEST_HASH and each.hash.startswith(called)],
    ):
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise UnknownRevision(f"{called} is the beginning of {', '.join(map(str, matching))}")
    there = ", ".join(map(str, kept)) or "none"
    raise UnknownRevision(f"no revision {called}; there are: {there}")


def revision_document(revision: KeptRevision, layouts: Sequence[Layout]) -> dict[str, Any]:
    """All that tells one revision from another, in an order that does not depend on who stored it.

    `layouts` are those in which it is planned or stands now.
    """
    document = {
        "spec": revision.spec,
        "images": revision.images,
        "layouts": [layout_data(layout) for layout in dict.fromkeys(layouts)],
        "facts": revision.facts,
        "usersConfig": revision.data.get("facts"),
        "weightBytes": revision.weight_bytes,
        "renderVersion": revision.data.get("renderVersion"),
    }
    return {name: _sorted(value) for name, value in document.items() if value not in (None, "", [], {})}


def _kept(manifest: Mapping[str, Any], owner: Owner) -> KeptRevision:
    """By its name, which nobody can edit."""
    meta = manifest["metadata"]
    return KeptRevision(
        manifest.get("revision", 0),
        meta["name"].removeprefix(names.revision_name(owner.name, "")),
        meta.get("creationTimestamp", ""),
        _mapping(manifest.get("data")),
    )


def _belongs(manifest: Mapping[str, Any], owner: Owner) -> bool:
    return any(each["uid"] == owner.uid for each in manifest["metadata"].get("ownerReferences") or ())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
