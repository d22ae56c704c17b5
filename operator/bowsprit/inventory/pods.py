"""PodView: the few fields of a pod that planning and placement need, projected as pods stream in.

A cluster has tens of thousands of pods and all of them stay in memory, so a view is small (about 1 kB) and
its strings are interned. Only what somebody reads is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

from bowsprit.api.names import MODEL_LABEL
from bowsprit.api.pod_requests import pod_requests
from bowsprit.inventory.containers import Trouble, trouble_of
from bowsprit.inventory.wire import MOST_UNITS, NOTHING, label_text, mapping, mappings, text
from bowsprit.plan.needs import Needs

RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
"""The extended resources that Bowsprit plans."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation: of a ReplicaSet's pods that are alike otherwise, scaling down takes the cheapest first."""

_OWN_LABELS = "bowsprit.dev/"
_KEPT_LABELS = (_OWN_LABELS, "leaderworkerset.sigs.k8s.io/")
_MESSAGE_MAX = 256


class PodKey(NamedTuple):
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PodView:
    namespace: str
    name: str
    uid: str = ""
    node: str = ""
    """The node it is bound to, or else the one that required node affinity pins it to; "" for neither."""
    bound: bool = False
    gpus: tuple[tuple[str, int], ...] = ()
    """(resource, GPUs it asks for), as the scheduler counts them; only resources of RESOURCES."""
    needs: Needs = ()
    """What else it takes of its node."""
    phase: str = ""
    """Pending, Running, Succeeded, Failed or Unknown."""
    reason: str = ""
    """status.reason, e.g. UnexpectedAdmissionError or Evicted; of a pod that is not scheduled, why not."""
    message: str = ""
    """The kubelet's or the scheduler's own words to `reason`, at most 256 characters."""
    trouble: Trouble | None = None
    """What its containers say is wrong, or was; only of pods of ours."""
    terminating: bool = False
    grace: int = 0
    """Seconds that it is given to end, once it is on its way out."""
    gates: tuple[str, ...] = ()
    """Names of its scheduling gates."""
    scheduled: bool = False
    ready: bool = False
    owner_uid: str = ""
    """uid of the controlling owner."""
    deletion_cost: str = ""
    """Its annotation DELETION_COST."""
    labels: Mapping[str, str] = field(default_factory=lambda: NOTHING, hash=False)
    """Only those under bowsprit.dev/ and leaderworkerset.sigs.k8s.io/."""

    @property
    def key(self) -> PodKey:
        return PodKey(self.namespace, self.name)

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: the kubelet has given its GPUs back."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def has_ended(self) -> bool:
        """A container of it has ended or failed, and may have been started again."""
        return self.trouble is not None and self.trouble.ended

    @property
    def is_there(self) -> bool:
        """It takes what it asks for of `node` from others: bound there, or pinned there by Bowsprit. A user
        may have taken the model's label off since; the scheduler binds the pod all the same."""
        return bool(self.node) and not self.finished and (self.bound or self._of_bowsprit)

    @property
    def _of_bowsprit(self) -> bool:
        return any(label.startswith(_OWN_LABELS) for label in self.labels)

    @property
    def holds(self) -> bool:
        """It keeps GPUs of `node` from others."""
        return bool(self.gpus) and self.is_there

    @property
    def holder(self) -> str:
        """`namespace/name` of its ModelDeployment, or of the pod itself when it is not one of ours."""
        return f"{self.namespace}/{self.labels.get(MODEL_LABEL) or self.name}"


def pod_facts(pod: Mapping[str, Any]) -> PodView:
    """Project a v1 Pod. Never raises: what is missing or of a wrong type reads as empty."""
    metadata, spec, status = (
        mapping(pod.get("metadata")),
        mapping(pod.get("spec")),
        mapping(pod.get("status")),
    )
    bound = text(spec.get("nodeName"))
    scheduling, readiness = _conditions(status)
    scheduled = bool(bound) or scheduling.get("status") == "True"
    words = status if scheduled or status.get("reason") else scheduling
    message = words.get("message")
    gpus, needs = _asked(spec)
    kept = _kept_labels(metadata)
    grace = metadata.get("deletionGracePeriodSeconds")
    return PodView(
        namespace=text(metadata.get("namespace")) or "default",
        name=text(metadata.get("name")),
        uid=_plain(metadata.get("uid")),
        node=bound or _pinned_node(spec),
        bound=bool(bound),
        gpus=gpus,
        needs=needs,
        phase=text(status.get("phase")),
        reason=text(words.get("reason")),
        message=message[:_MESSAGE_MAX] if isinstance(message, str) else "",
        trouble=trouble_of(status) if MODEL_LABEL in kept else None,
        terminating=bool(metadata.get("deletionTimestamp")),
        grace=grace if isinstance(grace, int) else 0,
        gates=tuple(text(gate.get("name")) for gate in mappings(spec.get("schedulingGates"))),
        scheduled=scheduled,
        ready=readiness.get("status") == "True",
        owner_uid=_owner_uid(metadata),
        deletion_cost=text(mapping(metadata.get("annotations")).get(DELETION_COST)),
        labels=kept,
    )


def _plain(value: object) -> str:
    return value if isinstance(value, str) else ""


def _conditions(status: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """PodScheduled and Ready."""
    scheduling = readiness = NOTHING
    for condition in mappings(status.get("conditions")):
        kind = condition.get("type")
        if kind == "PodScheduled":
            scheduling = condition
        elif kind == "Ready":
            readiness = condition
    return scheduling, readiness


def _kept_labels(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    kept = {}
    for key, value in mapping(metadata.get("labels")).items():
        if isinstance(key, str) and key.startswith(_KEPT_LABELS):
            read = label_text(value)
            if read is not None:
                kept[text(key)] = read
    return kept or NOTHING


def _owner_uid(metadata: Mapping[str, Any]) -> str:
    for owner in mappings(metadata.get("ownerReferences")):
        if owner.get("controller") is True:
            return text(owner.get("uid"))
    return ""


def _pinned_node(spec: Mapping[str, Any]) -> str:
    """The one node that required node affinity allows by metadata.name; terms are alternatives."""
    affinity = spec.get("affinity")
    if not affinity:
        return ""
    required = mapping(mapping(affinity).get("nodeAffinity")).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    pinned = {_named_node(term) for term in mappings(mapping(required).get("nodeSelectorTerms"))}
    return pinned.pop() if len(pinned) == 1 else ""


def _named_node(term: Mapping[str, Any]) -> str:
    for wanted in mappings(term.get("matchFields")):
        values = wanted.get("values")
        if (
            wanted.get("key") == "metadata.name"
            and wanted.get("operator") == "In"
            and isinstance(values, list)
        ):
            return text(values[0]) if len(values) == 1 else ""
    return ""


def _asked(spec: Mapping[str, Any]) -> tuple[tuple[tuple[str, int], ...], Needs]:
    """GPUs, and everything else."""
    asked = pod_requests(spec)
    counts = tuple((resource, asked.pop(resource, 0)) for resource in RESOURCES)
    gpus = tuple((resource, count) for resource, count in counts if 0 < count <= MOST_UNITS)
    return gpus, _shared(tuple(sorted(asked.items())))


@lru_cache(maxsize=16384)
def _shared(needs: Needs) -> Needs:
    """One tuple for all pods that ask for the same."""
    return tuple((intern(resource), amount) for resource, amount in needs)
