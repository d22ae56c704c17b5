"""One function per condition: from an observation to (status, reason, message).

What the types mean, and how kstatus (Flux, kpt, Helm, Argo CD) reads them:

- Ready: the model is as the spec asks, and its replicas answer. It is there from the first pass on, because
  a custom resource without it counts as done.
- Reconciling: something is still to come. Stalled: only a change by the user helps. Never both True, and
  Stalled is what ends the waiting of `flux`, `helm --wait` and their like, so a wait for GPUs is not
  Stalled.
- Planned, GPUsReserved, Available: the steps; Available asks whether any replica answers, of whatever
  revision.
- Progressing: as on a Deployment; True also when the rollout is complete.
- PluginVerified: whether preflight has proven the plugins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from bowsprit.api.reasons import Condition, Reason
from bowsprit.facts.report import Verdict as Proven
from bowsprit.status.course import Course, Finding
from bowsprit.status.findings import (
    LOSSES,
    PLANNING,
    RESERVING,
    SERVING,
    apply_refused,
    first,
    rollout_failed,
)
from bowsprit.status.observed import Observed
from bowsprit.status.preflight import (
    Proof,
    broken,
    unjudged_message,
    unproven,
    verified_message,
    warnings_message,
)
from bowsprit.status.text import count, listed, share

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


class Verdict(NamedTuple):
    status: str
    reason: str
    message: str


def ready(observed: Observed) -> Verdict:
    finding = first(SERVING, observed)
    stalled = finding is not None and finding.course is Course.STALLED
    if settled(observed) and not stalled:
        return Verdict(TRUE, Reason.REPLICAS_READY, _ready_message(observed))
    if finding is None:
        return Verdict(UNKNOWN, Reason.RECONCILING, "Not observed yet.")
    status = UNKNOWN if observed.plan is None and finding.course is Course.WORKING else FALSE
    return Verdict(status, finding.reason, finding.message)


def reconciling(observed: Observed) -> Verdict:
    finding = first(SERVING, observed)
    if finding is not None and finding.course is Course.STALLED:
        return Verdict(FALSE, finding.reason, "Stalled: Bowsprit waits for a change by the user.")
    refusal = apply_refused(observed)
    if refusal is not None:
        # Of a model that is Ready or suspended too: something still has to go.
        return Verdict(TRUE, refusal.reason, refusal.message)
    surplus = [unit for unit in observed.units if unit.leaving]
    if observed.suspended:
        status = TRUE if observed.units else FALSE
        return Verdict(status, Reason.SUSPENDED, finding.message if finding else "Suspended.")
    if not settled(observed) and finding is not None:
        return Verdict(TRUE, finding.reason, finding.message)
    if surplus:
        whose = "its" if len(surplus) == 1 else "their"
        message = f"{count(len(surplus), 'replica')} stopping; {whose} GPUs come free then."
        return Verdict(TRUE, Reason.RECONCILING, message)
    return Verdict(FALSE, Reason.RECONCILED, "The cluster is as the spec asks.")


def stalled(observed: Observed) -> Verdict:
    finding = first(SERVING, observed)
    if finding is not None and finding.course is Course.STALLED:
        return Verdict(TRUE, finding.reason, finding.message)
    if finding is None:
        return Verdict(FALSE, Reason.RECONCILED, "Nothing is in the way.")
    if observed.suspended:
        return Verdict(FALSE, finding.reason, "Suspended, as asked.")
    told = Condition.RECONCILING if settled(observed) else Condition.READY
    return Verdict(FALSE, finding.reason, f"It goes on by itself: see {told}.")


def plugin_verified(observed: Observed) -> Verdict:
    if observed.spec is None:
        return Verdict(UNKNOWN, Reason.INVALID_SPEC, "The spec cannot be read: see Ready.")
    if observed.proof is not None:
        return _proven(observed, observed.proof)
    plugins = observed.spec.plugins
    if not plugins:
        return Verdict(TRUE, Reason.NO_PLUGINS, "No plugins are asked for.")
    unproven = f"{count(len(plugins), 'plugin')} not verified: spec.preflight is Skip"
    message = f"{unproven}, so a fault shows only when vLLM starts."
    return Verdict(UNKNOWN, Reason.PREFLIGHT_SKIPPED, message)


def _proven(observed: Observed, proof: Proof) -> Verdict:
    if proof.report is None:
        if observed.suspended:
            return Verdict(UNKNOWN, Reason.SUSPENDED, "Suspended: preflight runs when the model goes on.")
        under_way = unproven(proof)
        status = FALSE if under_way.course is Course.STALLED else UNKNOWN
        return Verdict(status, under_way.reason, under_way.message)
    if (fault := broken(proof.report)) is not None:
        return Verdict(FALSE, fault.reason, fault.message)
    if proof.report.verdict is Proven.UNJUDGED:
        return Verdict(UNKNOWN, Reason.UNJUDGED, unjudged_message(proof.report))
    if proof.report.verdict is Proven.WARNINGS:
        return Verdict(TRUE, Reason.VERIFIED_WITH_WARNINGS, warnings_message(proof.report))
    return Verdict(TRUE, Reason.VERIFIED, verified_message(proof.report))


def planned(observed: Observed) -> Verdict:
    finding = first(PLANNING, observed)
    if finding is not None:
        return _not_yet(finding)
    return Verdict(TRUE, Reason.PLANNED, _planned_message(observed))


def gpus_reserved(observed: Observed) -> Verdict:
    finding = first(RESERVING, observed)
    if finding is None:
        return Verdict(TRUE, Reason.RESERVED, _reserved_message(observed))
    if first(PLANNING, observed) is None or finding.reason == Reason.WAITING_FOR_GPUS:
        return _not_yet(finding)
    if not observed.wanted:
        return _not_yet(replace(finding, message="No GPUs are reserved anew: see Planned."))
    held = f"GPUs are reserved for {share(observed.reserved, observed.wanted, 'replica')}: see Planned."
    return _not_yet(replace(finding, message=held))


def available(observed: Observed) -> Verdict:
    if observed.spec is None:
        message = f"{count(observed.answering, 'replica')} serving."
    else:
        message = f"{share(observed.answering, observed.wanted, 'replica', 'serving')}."
    status = TRUE if observed.answering else FALSE
    if observed.answering and observed.answering >= observed.wanted:
        return Verdict(TRUE, Reason.REPLICAS_READY, message)
    if (loss := first(LOSSES, observed)) is not None:
        return Verdict(status, loss.reason, f"{message} {loss.message}")
    return Verdict(status, Reason.SUSPENDED if observed.suspended else Reason.REPLICAS_NOT_READY, message)


def progressing(observed: Observed) -> Verdict:
    finding = first(SERVING, observed)
    if settled(observed) and (finding is None or finding.course is not Course.STALLED):
        message = f"Revision {observed.target} serves with {count(observed.ready, 'replica')}."
        return Verdict(TRUE, Reason.ROLLOUT_COMPLETE, message)
    if finding is None:
        return Verdict(UNKNOWN, Reason.RECONCILING, "Not observed yet.")
    if finding == rollout_failed(observed):
        return Verdict(FALSE, finding.reason, finding.message)
    if observed.target is None:
        message = "Which revision is asked for is not known yet"
    else:
        of_it = f"of revision {observed.target} ready"
        message = share(observed.ready, observed.wanted, "replica", of_it)
    if finding.course is not Course.WORKING:
        return Verdict(FALSE, finding.reason, f"{message}; it stands still: see Ready.")
    return Verdict(TRUE, Reason.ROLLING_OUT if observed.rolling else finding.reason, f"{message}.")


CONDITIONS: tuple[tuple[Condition, Callable[[Observed], Verdict]], ...] = (
    (Condition.READY, ready),
    (Condition.RECONCILING, reconciling),
    (Condition.STALLED, stalled),
    (Condition.PLUGIN_VERIFIED, plugin_verified),
    (Condition.PLANNED, planned),
    (Condition.GPUS_RESERVED, gpus_reserved),
    (Condition.AVAILABLE, available),
    (Condition.PROGRESSING, progressing),
)
"""In the order in which a reader wants them: the summary first, then the steps."""


def settled(observed: Observed) -> bool:
    """As many replicas of the target revision serve as are asked for, and nothing else stands or serves."""
    planned_once = observed.plan is not None or observed.ready > 0
    return (
        observed.stand_in is None
        and planned_once
        and not observed.suspended
        and not observed.rolling
        and observed.ready >= observed.wanted
    )


def _not_yet(finding: Finding) -> Verdict:
    status = UNKNOWN if finding.course is Course.WORKING and finding.reason == Reason.RECONCILING else FALSE
    return Verdict(status, finding.reason, finding.message)


def _layouts(observed: Observed) -> str:
    replicas = observed.plan.replicas if observed.plan else ()
    return listed([f"{replica.layout} on {replica.layout.product}" for replica in replicas])


def _planned_message(observed: Observed) -> str:
    replicas = observed.plan.replicas if observed.plan else ()
    if not replicas:
        return "0 replicas asked for: nothing to plan."
    gpus = sum(replica.layout.gpus for replica in replicas)
    return f"{count(len(replicas), 'replica')} planned with {count(gpus, 'GPU')}: {_layouts(observed)}."


def _ready_message(observed: Observed) -> str:
    if not observed.wanted:
        return "Scaled to 0 replicas, as asked: nothing serves."
    layouts = _layouts(observed)
    ready_ones = share(observed.ready, observed.wanted, "replica", "ready")
    return f"{ready_ones}{': ' + layouts if layouts else ''}."


def _reserved_message(observed: Observed) -> str:
    holding = [unit.replica for unit in observed.current if unit.reserved]
    if holding and all(replica.layout.on_cpus for replica in holding):
        nodes = listed(sorted({pod.node for replica in holding for pod in replica.pods}))
        return f"It runs on CPUs and needs no GPU; {count(len(holding), 'replica')} on {nodes}."
    gpus = count(sum(replica.layout.gpus for replica in holding), "GPU")
    nodes = listed(sorted({pod.node for replica in holding for pod in replica.pods}))
    return f"{gpus} reserved on {nodes}." if nodes else f"{gpus} reserved."
