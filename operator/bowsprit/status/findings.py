"""The ordered checks that every condition is made of: each looks at one observation and finds at most one
matter.

A check is pure and knows nothing of the others; the chains below say who is asked first, so that the
condition names the first thing in the way and not one of its consequences. (The idea is cert-manager's,
whose certificate policies are such chains.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bowsprit.api.reasons import Reason
from bowsprit.facts.model import FactsError
from bowsprit.status.course import Course, Finding
from bowsprit.status.growth import growth_words
from bowsprit.status.observed import ApplyError, Observed, Unit
from bowsprit.status.preflight import finding_of
from bowsprit.status.text import count, listed, share

UNSCHEDULABLE = "Unschedulable"
"""The scheduler's own word for a pod that no node takes."""

Check = Callable[[Observed], Finding | None]


def first(checks: Iterable[Check], observed: Observed) -> Finding | None:
    """The first finding of a chain."""
    return next((finding for check in checks if (finding := check(observed)) is not None), None)


# ---- the spec and what it refers to ----------------------------------------------------------------------


def invalid_spec(observed: Observed) -> Finding | None:
    if observed.faults:
        message = f"{count(len(observed.faults), 'field')} to change: {'; '.join(observed.faults)}"
    elif observed.spec is None:
        message = (
            "The spec cannot be read as v1alpha1. Apply it again with the CRD of this operator's version."
        )
    else:
        return None
    return Finding(Reason.INVALID_SPEC, message, Course.STALLED)


def suspended(observed: Observed) -> Finding | None:
    if not observed.suspended:
        return None
    held = sum(unit.pinned for unit in observed.units)
    gave = f"{count(held, 'pod')} still stopping." if held else "All GPUs are given back."
    return Finding(Reason.SUSPENDED, f"Suspended. {gave} Set spec.suspend to false to go on.", Course.BLOCKED)


def config_fault(observed: Observed) -> Finding | None:
    """A missing config may still come (it is often applied a moment later); a wrong one has to be changed."""
    error = observed.facts
    if not isinstance(error, FactsError):
        return None
    named = error.message if error.field in error.message else f"{error.field}: {error.message}"
    course = Course.BLOCKED if error.reason == Reason.CONFIG_MISSING else Course.STALLED
    return Finding(error.reason, named, course)


def preflight(observed: Observed) -> Finding | None:
    """The proof that comes before planning; what runs is left alone meanwhile."""
    proof = observed.proof
    if proof is None:
        return None
    if proof.report is None and proof.attempt is None:
        return apply_refused(observed) or pods_refused(observed) or finding_of(proof)
    return finding_of(proof)


def rollout_failed(observed: Observed) -> Finding | None:
    """The revision that the spec asks for was tried, and failed before requests went to it."""
    failed = observed.failed
    if failed is None or failed.revision != observed.target:
        return None
    message = f"Revision {failed.revision} has failed: {failed.message} {_consequence(observed)}"
    return Finding(failed.reason, message, Course.STALLED)


def _consequence(observed: Observed) -> str:
    if observed.fallback is not None:
        return (
            f"Revision {observed.fallback}, which served before, is restored. The failed one is not tried "
            "again until the spec asks for another revision: correct the spec, or go back to the old one."
        )
    if observed.serving is None:
        return (
            "No revision has served before, so there is none to go back to: it is tried on. Correct the spec."
        )
    rollout = observed.spec.rollout if observed.spec is not None else None
    if rollout is not None and rollout.rollback_on_failure is False:
        return "spec.rollout.rollbackOnFailure is false, so it is tried on. Correct the spec."
    return f"Revision {observed.serving}, which served before, is not kept any more: it is tried on."


# ---- the plan --------------------------------------------------------------------------------------------


def not_planned(observed: Observed) -> Finding | None:
    """No plan yet, or one that was made before the last change of `replicas`."""
    plan = observed.plan
    if plan is not None and (plan.refusal is not None or len(plan.replicas) >= observed.wanted):
        return None
    return Finding(Reason.RECONCILING, "Not planned yet; the next planning pass decides.", Course.WORKING)


def refused(observed: Observed) -> Finding | None:
    """What the planner refused, in its own words and with its own reason."""
    plan = observed.plan
    if plan is None or plan.refusal is None:
        return None
    share_of_it = share(len(plan.replicas), plan.wanted, "replica", "planned")
    planned = f"{share_of_it}. " if plan.replicas else ""
    place = f" Place {plan.position} in the queue; it starts by itself." if plan.position else ""
    if not plan.refusal.waits:
        # What takes its turn in a rollout waits for nothing that others would have to give up.
        course = Course.WORKING if plan.refusal.reason == Reason.ROLLING_OUT else Course.STALLED
        return Finding(plan.refusal.reason, f"{planned}{plan.refusal.message}", course)
    growth = f" {growth_words(observed.growth)}" if observed.growth else ""
    message = f"{planned}{plan.refusal.message}{place}{growth}"
    return Finding(plan.refusal.reason, message, Course.BLOCKED)


def waits_for_gpus(observed: Observed) -> Finding | None:
    """The same refusal, as those see it who ask about GPUs: that it waits is what matters, not why."""
    finding = refused(observed)
    if finding is None or finding.course is not Course.BLOCKED:
        return finding
    return Finding(Reason.WAITING_FOR_GPUS, finding.message, Course.BLOCKED)


# ---- the workload ----------------------------------------------------------------------------------------


def lws_missing(observed: Observed) -> Finding | None:
    plan = observed.plan
    if observed.lws_installed or plan is None:
        return None
    if plan.refusal is not None and plan.refusal.reason == Reason.LWS_NOT_INSTALLED:
        return Finding(Reason.LWS_NOT_INSTALLED, plan.refusal.message, Course.BLOCKED)
    grouped = [replica for replica in plan.replicas if replica.layout.pods > 1]
    if not grouped:
        return None
    message = (
        f"{count(len(grouped), 'replica')} of {grouped[0].layout.pods} pods each cannot start: "
        "LeaderWorkerSet (leaderworkerset.x-k8s.io/v1) is not installed. "
        "Install it (https://lws.sigs.k8s.io/docs/installation); Bowsprit goes on by itself then. "
        "Replicas of one pod do not need it."
    )
    return Finding(Reason.LWS_NOT_INSTALLED, message, Course.BLOCKED)


def apply_refused(observed: Observed) -> Finding | None:
    error = foremost(observed.apply_errors)
    if error is None:
        return None
    where = f"{error.field}: " if error.field else ""
    cure = (
        "Change the part of the spec that it comes from."
        if error.invalid
        else "Bowsprit tries again by itself; see to the cause when it stays."
    )
    message = f"The API server refused {error.target}: {where}{error.message.rstrip('. ')}. {cure}"
    return Finding(Reason.APPLY_FAILED, message, Course.STALLED if error.invalid else Course.BLOCKED)


def foremost(errors: Iterable[ApplyError]) -> ApplyError | None:
    """The one that is told of several, in whatever order they came: what only a change of the spec cures."""
    return min(
        errors, key=lambda each: (not each.invalid, each.target, each.field, each.message), default=None
    )


def reservation_refused(observed: Observed) -> Finding | None:
    """Of a model that holds its GPUs only the removal of something else can be refused."""
    return None if observed.reserved >= observed.wanted else apply_refused(observed)


def pods_refused(observed: Observed) -> Finding | None:
    """Quotas, limits and policies refuse the pods of a workload and not the workload."""
    error = foremost(observed.refused_pods)
    if error is None or observed.reserved >= observed.wanted:
        return None
    message = (
        f"The API server refuses pods of {error.target}: {error.message.rstrip('. ')}. "
        "They are tried again by themselves, after pauses that grow to 17 minutes; see to the cause."
    )
    return Finding(Reason.APPLY_FAILED, message, Course.BLOCKED)


# ---- the pods --------------------------------------------------------------------------------------------


def node_lost(observed: Observed) -> Finding | None:
    """Replicas on a node that is gone, until others hold GPUs in their place."""
    hit = [unit for unit in observed.attempts if unit.lost_nodes]
    if not hit or observed.reserved >= observed.wanted:
        return None
    nodes = listed(sorted({node for unit in hit for node in unit.lost_nodes}))
    message = (
        f"{count(len(hit), 'replica')} stood on {nodes}: gone, or not Ready. "
        "Each is planned again as a whole; the others are not touched."
    )
    return Finding(Reason.NODE_LOST, message, Course.WORKING)


def bind_failed(observed: Observed) -> Finding | None:
    """A replica that its nodes refused, until another holds GPUs in its place."""
    unit = worst(unit for unit in observed.attempts if unit.failure is not None and unit.failure.binding)
    if unit is None or unit.failure is None or observed.reserved >= observed.wanted:
        return None
    message = (
        f"Replica {unit.replica.index}: {unit.bound} of {count(unit.replica.layout.pods, 'pod')} bound; "
        f"{unit.failure.reason}: {unit.failure.message.rstrip('. ')}. It is removed whole and planned again."
    )
    return Finding(Reason.BIND_FAILED, message, Course.WORKING)


def placing(observed: Observed) -> Finding | None:
    """Planned replicas whose pods are not all there, or not all pinned to their nodes."""
    if observed.plan is None or observed.reserved >= observed.wanted:
        return None
    pods = sum(replica.layout.pods for replica in observed.plan.replicas)
    exist = sum(unit.pods for unit in observed.current)
    pinned = sum(unit.pinned for unit in observed.current)
    if exist < pods:
        created = f"{exist} of {count(pods, 'pod')} created"
        message = f"{created}; a replica takes its GPUs when all of its pods are there."
        return Finding(Reason.WAITING_FOR_PODS, message, Course.WORKING)
    so_far = f"{pinned} of {count(pods, 'pod')} have their node."
    stuck = worst(unit for unit in observed.current if unit.failure and unit.failure.reason == UNSCHEDULABLE)
    if stuck is not None and stuck.failure is not None:
        message = (
            f"{so_far} The scheduler says: {stuck.failure.message.rstrip('. ')}. Add nodes, or ask for less "
            "in spec.engine.resources; it goes on by itself when there is room."
        )
        return Finding(Reason.PLACING, message, Course.BLOCKED)
    if observed.held_back:
        nodes = sorted(
            {pod.node for unit in observed.current if not unit.reserved for pod in unit.replica.pods}
        )
        so_far += (
            f" The others wait until all that they take (GPUs, CPU, memory) is free on {listed(nodes)}: pods "
            "that stop still hold it, or others took it (kubectl describe node); it goes on by itself."
        )
    return Finding(Reason.PLACING, so_far, Course.WORKING)


def rolling_out(observed: Observed) -> Finding | None:
    if not observed.rolling:
        return None
    old = len(observed.older)
    serving = sum(unit.serves for unit in observed.older)
    left = (
        f"{count(old, 'replica')} of older revisions left, {serving} serving"
        if old
        else "no older one is left"
    )
    ready = f"{observed.ready} of {count(observed.wanted, 'replica')} of revision {observed.target} ready"
    message = f"{ready}; {left}."
    unit = worst(filter(failed_itself, observed.attempts))
    return Finding(Reason.ROLLING_OUT, f"{message} {_failure(unit)}" if unit else message, Course.WORKING)


def replica_failed(observed: Observed) -> Finding | None:
    """A replica of which a container has ended or cannot start, wherever its pods are by now."""
    unit = worst(filter(failed_itself, observed.attempts))
    if unit is None or observed.ready >= observed.wanted:
        return None
    message = f"{observed.ready} of {count(observed.wanted, 'replica')} ready. {_failure(unit)}"
    return Finding(Reason.REPLICAS_NOT_READY, message, Course.WORKING)


def replicas_not_ready(observed: Observed) -> Finding | None:
    if observed.ready >= observed.wanted:
        return None
    message = f"{observed.ready} of {count(observed.wanted, 'replica')} ready. The engine is starting."
    return Finding(Reason.REPLICAS_NOT_READY, message, Course.WORKING)


def failed_itself(unit: Unit) -> bool:
    """Neither its nodes nor the scheduler have refused it."""
    failure = unit.failure
    refused = failure is None or failure.binding or failure.reason == UNSCHEDULABLE
    return not refused and not unit.serves


def worst(units: Iterable[Unit]) -> Unit | None:
    """The same one on every pass: the lowest index."""
    return min(units, key=lambda unit: unit.replica.index, default=None)


def _failure(unit: Unit) -> str:
    failure = unit.failure
    if failure is None:
        return ""
    said = f"Replica {unit.replica.index}: {failure.reason}: {failure.message.rstrip('. ')}."
    if not failure.ended:
        return f"{said} It starts by itself when that is mended."
    if unit.replica.layout.pods > 1:
        if failure.pause_seconds:
            again = f"it starts again {failure.pause_seconds:g} s after the last"
            said = f"{said} {failure.times} deaths in a row: {again}."
        return f"{said} Its pods are replaced; if it goes on, follow the log of a new one (kubectl logs -f)."
    return f"{said} It is started again, after pauses of up to 5 minutes; kubectl logs --previous says more."


# ---- chains ----------------------------------------------------------------------------------------------

LOSSES: tuple[Check, ...] = (node_lost, bind_failed)
"""What has taken replicas away, whether or not there are GPUs for others in their place."""

_ASKING = (invalid_spec, suspended, preflight, config_fault)

PLANNING: tuple[Check, ...] = (*_ASKING, not_planned, refused)
"""What keeps a model from being planned."""

_STARTING = (not_planned, lws_missing, waits_for_gpus)

RESERVING: tuple[Check, ...] = (*_ASKING, *_STARTING, reservation_refused, *LOSSES, pods_refused, placing)
"""What keeps the planned replicas from holding their GPUs."""

SERVING: tuple[Check, ...] = (
    *_ASKING,
    rollout_failed,
    *_STARTING,
    apply_refused,
    *LOSSES,
    pods_refused,
    rolling_out,
    replica_failed,
    placing,
    replicas_not_ready,
)
"""What keeps the model from being as the spec asks."""
