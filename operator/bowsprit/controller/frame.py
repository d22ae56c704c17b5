"""One ModelDeployment with everything that belongs to it, at one instant.

A Frame is gathered once, frozen, and then only read: the planner's wish, the steps to take and the status all
follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pydantic import ValidationError

from bowsprit.api.v1alpha1 import ModelDeployment, ModelDeploymentSpec
from bowsprit.controller.children import PREFLIGHT_KINDS, WORKLOADS, Child
from bowsprit.controller.groups import Group, groups_of, stragglers_of
from bowsprit.controller.knowledge import Knowledge
from bowsprit.controller.replicas import Replicas, holding, idle, match, remains
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.inventory.pods import PodView
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import ModelPlan, ReplicaPlan
from bowsprit.plan.wish import Wish
from bowsprit.render.owner import Owner
from bowsprit.render.preflight import preflight_key
from bowsprit.render.problems import problems
from bowsprit.render.requests import needs_of
from bowsprit.render.revision import Revision, target_revision
from bowsprit.render.wishes import is_required, rolls_back, wish_of
from bowsprit.status.attempt import Attempt
from bowsprit.status.replicas import RecordedReplica
from bowsprit.status.revisions import recorded_failure, recorded_serving


@dataclass(frozen=True, slots=True)
class Declared:
    """A ModelDeployment as the user wrote it, read once per version."""

    key: ModelKey
    uid: str
    generation: int
    deployment: ModelDeployment | None
    """None when it cannot be read as v1alpha1."""
    faults: tuple[str, ...]
    """What is wrong with it, each as `field: problem and cure`."""
    status: Mapping[str, Any]
    """As last written."""
    terminating: bool
    preflight: str = ""
    """Hash of what preflight has to judge; empty when the spec asks for none."""

    @property
    def owner(self) -> Owner:
        return Owner(self.key.name, self.key.namespace, self.uid)


@dataclass(frozen=True, slots=True)
class Frame:
    declared: Declared
    knowledge: Knowledge
    children: tuple[Child, ...]
    strays: tuple[Child, ...]
    """Children that are on their way out, or belong to an earlier object of the same name; of what preflight
    leaves, orphans too, for nobody runs on them."""
    groups: tuple[Group, ...]
    replicas: Replicas
    target: Revision | None
    """What is planned: the revision that the spec asks for, or the one that stands in for it. None while the
    spec or the facts cannot be read: then what runs is left alone."""
    asked: Revision | None = None
    """The revision that the present spec asks for; None while that is not known."""
    stragglers: tuple[tuple[PodView, ...], ...] = ()
    """Pods that still hold GPUs after their workload has gone, by replica."""
    attempts: tuple[Attempt, ...] = ()
    """Pods of preflight Jobs."""

    @property
    def key(self) -> ModelKey:
        return self.declared.key

    @property
    def facts(self) -> ModelFacts | FactsError | None:
        """Of the present spec."""
        return self.knowledge.facts

    @property
    def stands_in(self) -> bool:
        """Another revision is planned than the spec asks for."""
        return self.target is not self.asked

    @property
    def suspended(self) -> bool:
        return self.declared.deployment is not None and bool(self.declared.deployment.spec.suspend)

    @property
    def nodes(self) -> set[str]:
        """Nodes that pods of the model stand on or are pinned to."""
        grouped = [pod for group in self.groups for pod in group.pods]
        return {pod.node for pod in chain(grouped, *self.stragglers) if pod.node}

    @property
    def ready(self) -> int:
        """Replicas of the target revision that serve."""
        return sum(group.ready for group, _ in self.replicas.standing)

    @property
    def serving(self) -> str | None:
        """The revision that serves, or did last; None until one has served."""
        return serving_revision(self.declared, self.groups, self.asked or self.target)

    @property
    def selected(self) -> str | None:
        """The revision that requests are sent to."""
        return self.serving or (self.target.hash if self.target is not None else None)

    @property
    def fallback(self) -> str | None:
        """The revision that is restored when the one that the spec asks for fails."""
        deployment, serving = self.declared.deployment, self.serving
        kept = {child.stored.hash for child in self.children if child.stored is not None}
        wanted = deployment is not None and rolls_back(deployment.spec)
        return serving if wanted and serving in kept else None


def serving_revision(declared: Declared, groups: Iterable[Group], asked: Revision | None) -> str | None:
    """The revision with most ready replicas, the one that is asked for when equal; one that has failed only
    where no other has any. While none is ready it stays what it was, so that a rollout in place is one
    rollout until the new revision serves."""
    wanted, failed = asked.hash if asked else None, given_up(declared)
    ready = Counter(group.workload.revision for group in groups if group.ready)
    if ready:
        return max(ready, key=lambda each: (each != failed, ready[each], each == wanted, each))
    return recorded_serving(declared.status)


def declared_of(obj: Mapping[str, Any]) -> Declared:
    """Reads a ModelDeployment; whatever is wrong with it becomes `faults`.

    The rules of the CRD are not asked again, the API server has applied them; what it cannot see is asked
    here.
    """
    meta = obj["metadata"]
    faults: tuple[str, ...] = ()
    deployment = None
    try:
        deployment = ModelDeployment.model_validate(obj)
    except ValidationError as error:
        faults = tuple(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    if deployment is not None:
        faults = problems(deployment.spec)
    return Declared(
        key=ModelKey(meta["namespace"], meta["name"]),
        uid=meta["uid"],
        generation=int(meta.get("generation", 0)),
        deployment=None if faults else deployment,
        faults=faults,
        status=obj.get("status") or {},
        terminating="deletionTimestamp" in meta,
        preflight=_preflight(deployment, meta["namespace"]) if deployment and not faults else "",
    )


def _preflight(deployment: ModelDeployment, namespace: str) -> str:
    spec = deployment.spec
    return preflight_key(spec, namespace) if is_required(spec) else ""


def frame_of(
    declared: Declared,
    knowledge: Knowledge,
    *,
    children: Iterable[Child],
    pods: Iterable[PodView],
    attempts: Iterable[Attempt],
    recorded: Iterable[RecordedReplica],
    is_broken: Callable[[PodView], bool],
) -> Frame:
    """Gathers what belongs to a model."""
    found, members = tuple(children), tuple(pods)
    own = tuple(child for child in found if child.owner == declared.uid and not child.terminating)
    strays = tuple(
        child for child in found if child not in own and (child.owner or child.kind in PREFLIGHT_KINDS)
    )
    orphans = [child for child in found if not child.owner and not child.terminating]
    asked = _asked(declared, knowledge, [*own, *orphans])
    stand_in = knowledge.stand_in.revision if knowledge.stand_in is not None else None
    # Orphans that are just what is asked for are taken back: applying them makes them ours again.
    hashes = {revision.hash for revision in (asked, stand_in) if revision is not None}
    workloads = [
        child
        for child in (*own, *(orphan for orphan in orphans if orphan.revision in hashes))
        if child.kind in WORKLOADS
    ]
    groups = groups_of(workloads, members, is_broken)
    serving = serving_revision(declared, groups, asked or stand_in)
    replaced = asked is None or (serving != asked.hash and given_up(declared) == asked.hash)
    target = stand_in if stand_in is not None and replaced else asked
    return Frame(
        declared=declared,
        knowledge=knowledge,
        children=own,
        strays=strays,
        groups=groups,
        replicas=match(groups, recorded, target.hash if target else None, serving, given_up(declared)),
        target=target,
        asked=asked,
        stragglers=stragglers_of(members, groups, {orphan.name for orphan in orphans}),
        attempts=tuple(attempts),
    )


def wish_from(frame: Frame, lws_installed: bool) -> Wish | None:
    """What the model asks of the planner; None when it cannot ask, and then what runs is left alone."""
    deployment = frame.declared.deployment
    if deployment is None or (frame.target is None and not frame.suspended):
        return None
    replicas = frame.replicas
    facts = frame.facts if isinstance(frame.facts, ModelFacts) else None
    if frame.stands_in and (stand_in := frame.knowledge.stand_in) is not None:
        facts = stand_in.facts
    if frame.target is not None:
        deployment = _with_spec_of(frame.target, deployment)
    leaving = [
        *(plan for _, plan in replicas.leaving),
        *(_held(group, plan) for group, plan in replicas.partial),
        *(holding(group) for group in replicas.lost),
        *(remains(pods) for pods in frame.stragglers),
    ]
    return replace(
        wish_of(deployment, facts),
        standing=tuple(plan for _, plan in replicas.standing),
        needs=needs_of(frame.key.name, frame.target) if frame.target else (),
        promised=replicas.promised,
        outgoing=tuple(plan for _, plan in replicas.outgoing),
        outgoing_ready=sum(group.ready for group, _ in replicas.outgoing),
        idle=idle(replicas.outgoing),
        leaving=tuple(leaving),
        ready=frame.ready,
        one_pod_only=not lws_installed,
    )


def _with_spec_of(revision: Revision, deployment: ModelDeployment) -> ModelDeployment:
    """The deployment as the revision's pods are rendered, with the defaults of its day; what is no part of a
    revision (how many replicas, in which order) is as it is now."""
    return deployment.model_copy(update={"spec": _with_outside_of(deployment.spec, revision.spec)})


def _with_outside_of(now: ModelDeploymentSpec, spec: ModelDeploymentSpec) -> ModelDeploymentSpec:
    """`spec` with how many replicas run, and in which order, as it is `now`."""
    return spec.model_copy(
        update={
            "replicas": now.replicas,
            "priority": now.priority,
            "suspend": now.suspend,
            "rollout": now.rollout,
        }
    )


def is_known_by(declared: Declared, before: Declared) -> bool:
    """Whether what was known of a model as it was `before` holds for it as it is declared now."""
    if declared.deployment is None or before.deployment is None:
        return False
    spec, earlier = declared.deployment.spec, before.deployment.spec
    same = declared.uid == before.uid and declared.preflight == before.preflight
    return same and _with_outside_of(spec, earlier) == spec


def promising(wish: Wish, plan: ModelPlan) -> Wish:
    """The wish for a next pass that comes before anything is seen of the model: what was planned now is
    promised, and what was not is promised no more."""
    return replace(wish, promised=tuple(each for each in plan.replicas if each not in wish.standing))


def given_up(declared: Declared) -> str | None:
    """The revision that has failed and that another is to stand in for."""
    failed, deployment = recorded_failure(declared.status), declared.deployment
    wanted = deployment is not None and rolls_back(deployment.spec)
    return failed.revision if failed is not None and wanted else None


def _asked(declared: Declared, knowledge: Knowledge, children: Iterable[Child]) -> Revision | None:
    facts = knowledge.facts
    if declared.deployment is None or not isinstance(facts, ModelFacts):
        return None
    known = [child.stored for child in children if child.stored is not None]
    spec = declared.deployment.spec
    return target_revision(spec, facts, declared.key.name, knowledge.images(spec), known)


def _held(group: Group, promise: ReplicaPlan) -> ReplicaPlan:
    """The part of a promise that is taken up already, so that the planner counts it for this model."""
    return replace(promise, pods=holding(group).pods)
