"""The objects that a ModelDeployment owns, projected to what reconciling needs.

A child is left alone while two things hold: it carries the hash of what would be applied now, and its content
is what our own write left behind. So repeated passes write nothing, and a child that somebody edited is put
right.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bowsprit.cluster.client import FIELD_MANAGER
from bowsprit.cluster.resources import Resource
from bowsprit.facts.report import Report, parse_report
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import Layout
from bowsprit.render import labels, names, workload
from bowsprit.render.revision import Revision, from_controller_revision

RENDERED = "bowsprit.dev/rendered"
"""Annotation: hash of the manifest that was applied."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What preflight reported, as its ConfigMap keeps it."""

    report: Report
    images: tuple[tuple[str, str], ...]
    """(container, imageID as the kubelet reported it)."""


@dataclass(frozen=True, slots=True)
class Child:
    kind: str
    namespace: str
    name: str
    uid: str
    owner: str
    """uid of the ModelDeployment; "" for an orphan, as `kubectl delete --cascade=orphan` leaves it."""
    model: str
    revision: str
    rendered: str
    content: str
    """Hash of what it says now (spec or data, and labels), whoever wrote it."""
    applied: str
    """RFC 3339 time of our last apply that changed it."""
    foreign: bool
    """Somebody else owns a part of its content."""
    replicas: int
    layout: Layout | None
    """Of a workload; None for other kinds, and for a workload whose layout cannot be read any more."""
    stored: Revision | None
    """Of a ControllerRevision that can be read."""
    terminating: bool
    ended: str = ""
    """Of a Job: Complete or Failed when it has come to its end."""
    preflight: str = ""
    """Hash of what a preflight Job or its report judges."""
    kept: Kept | None = None
    """Of a ConfigMap with a report that can be read."""

    @property
    def key(self) -> ModelKey:
        return ModelKey(self.namespace, self.model)


def project(resource: Resource, obj: Mapping[str, Any]) -> Child | None:
    """A Child, or None for an object that belongs to no ModelDeployment and never did."""
    # Items of a list do not say of which kind they are.
    obj = {**obj, "kind": resource.kind, "apiVersion": resource.api_version}
    meta = obj["metadata"]
    marks = meta.get("labels") or {}
    references = meta.get("ownerReferences") or [{"kind": "ModelDeployment", "name": marks.get(labels.MODEL)}]
    owner: Mapping[str, Any] = next(
        (each for each in references if each.get("kind") == "ModelDeployment"), {}
    )
    model = owner.get("name")
    if not model:
        return None
    is_workload = obj["kind"] in WORKLOADS
    return Child(
        kind=obj["kind"],
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        owner=owner.get("uid", ""),
        model=model,
        revision=marks.get(labels.REVISION, ""),
        rendered=(meta.get("annotations") or {}).get(RENDERED, ""),
        content=digest([obj.get("spec"), obj.get("data"), marks]),
        applied=next((str(e.get("time")) for e in meta.get("managedFields") or () if _ours(e)), ""),
        foreign=any(_foreign(entry) for entry in meta.get("managedFields") or ()),
        replicas=int(obj["spec"].get("replicas", 1)) if is_workload else 0,
        layout=workload.layout_of(obj) if is_workload else None,
        stored=from_controller_revision(obj) if obj["kind"] == "ControllerRevision" else None,
        terminating="deletionTimestamp" in meta,
        ended=_ended(obj) if obj["kind"] == "Job" else "",
        preflight=marks.get(labels.PREFLIGHT, ""),
        kept=_kept(obj.get("data") or {}) if obj["kind"] == "ConfigMap" else None,
    )


def _ended(job: Mapping[str, Any]) -> str:
    conditions = (job.get("status") or {}).get("conditions") or ()
    ends = [each["type"] for each in conditions if each.get("status") == "True"]
    return next((end for end in ends if end in ("Complete", "Failed")), "")


def _kept(data: Mapping[str, str]) -> Kept | None:
    report = parse_report(data.get(names.REPORT_KEY, ""))
    if report is None:
        return None
    try:
        images = json.loads(data.get(names.IMAGES_KEY, "{}"))
    except (ValueError, RecursionError):
        images = {}
    named = images.items() if isinstance(images, Mapping) else ()
    return Kept(report, tuple(pair for pair in named if all(isinstance(text, str) for text in pair)))


WORKLOADS = ("Deployment", "LeaderWorkerSet")
PREFLIGHT_KINDS = ("Job", "ConfigMap")


def digest(value: Any) -> str:
    """Hash of plain data, independent of key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stamped(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the hash of itself in its annotations."""
    meta = manifest["metadata"]
    annotations = {**(meta.get("annotations") or {}), RENDERED: digest(manifest)}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def is_current(child: Child | None, manifest: Mapping[str, Any], written: str | None) -> bool:
    """True when applying the stamped manifest would change nothing.

    `written`: the content that our last apply left behind; None when this process has not written it yet, and
    then the child is believed if nobody else owns a part of it.
    """
    if child is None or child.rendered != manifest["metadata"]["annotations"][RENDERED]:
        return False
    return not child.foreign if written is None else child.content == written


def _ours(entry: Mapping[str, Any]) -> bool:
    return entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply"


def _foreign(entry: Mapping[str, Any]) -> bool:
    fields = entry.get("fieldsV1") or {}
    return (
        not _ours(entry)
        and entry.get("subresource") != "status"
        and bool({"f:spec", "f:data"} & fields.keys())
    )
