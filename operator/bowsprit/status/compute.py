"""The whole `status` of a ModelDeployment, as the API server stores it.

Computing it again from the same observation gives the same dict, until a deadline has passed; so a pass that
changes nothing writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bowsprit.api.names import HEAD, HTTP_PORT, MODEL_LABEL, ROLE_LABEL
from bowsprit.api.reasons import Condition
from bowsprit.api.status import REPLICAS_MAX
from bowsprit.facts.model import ModelFacts
from bowsprit.plan.result import CPU
from bowsprit.status.conditions import CONDITIONS, Verdict
from bowsprit.status.failure import failed_of, progress_of
from bowsprit.status.observed import Observed
from bowsprit.status.phase import phase
from bowsprit.status.replicas import replica_to_status
from bowsprit.status.revisions import revisions_to_status
from bowsprit.status.text import cut

LAYOUT_MAX = 256


def compute(observed: Observed, previous: Mapping[str, Any] | None, now: str) -> dict[str, Any]:
    """Return the status to write: equal to `previous` when nothing has changed.

    `now` is an RFC 3339 time and is used for conditions whose status flips, and for the clock of a rollout
    (failure.py).
    """
    progress = progress_of(observed, previous, now)
    observed = replace(observed, failed=failed_of(observed, progress, previous, now))
    verdicts = {condition: judge(observed) for condition, judge in CONDITIONS}
    status: dict[str, Any] = {
        "observedGeneration": observed.generation,
        "phase": str(phase(verdicts)),
        "conditions": _conditions(verdicts, previous, observed.generation, now),
        "replicas": sum(unit.pods > 0 and not unit.leaving for unit in observed.units),
        "readyReplicas": observed.answering,
        "selector": head_selector(observed.key.name),
        **_plan(observed),
    }
    status |= {name: text for name, text in _columns(observed).items() if text}
    if revisions := revisions_to_status(observed, None if observed.failed else progress):
        status["revisions"] = revisions
    if (waiting := _waiting(observed)) is not None:
        status["waiting"] = waiting
    return status


def head_selector(name: str) -> str:
    """Selects one pod a replica, the head, as the scale subresource wants it."""
    return f"{MODEL_LABEL}={name},{ROLE_LABEL}={HEAD}"


def service_url(observed: Observed) -> str:
    return f"http://{observed.key.name}.{observed.key.namespace}.svc:{HTTP_PORT}"


def _conditions(
    verdicts: Mapping[Condition, Verdict], previous: Mapping[str, Any] | None, generation: int, now: str
) -> list[dict[str, Any]]:
    before = previous_conditions(previous)
    conditions = []
    for condition, verdict in verdicts.items():
        old = before.get(condition, {})
        since = old.get("lastTransitionTime") if old.get("status") == verdict.status else None
        conditions.append(
            {
                "type": str(condition),
                "status": verdict.status,
                "reason": str(verdict.reason),
                "message": cut(verdict.message),
                "observedGeneration": generation,
                "lastTransitionTime": since or now,
            }
        )
    return conditions


def previous_conditions(status: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """The conditions of a status by type; whatever is damaged is left out."""
    conditions = (status or {}).get("conditions")
    return {
        str(each.get("type")): each
        for each in (conditions if isinstance(conditions, list) else [])
        if isinstance(each, Mapping)
    }


def _plan(observed: Observed) -> dict[str, Any]:
    """What is promised, and what stands of older revisions: what the next pass has to know.

    What the plan has given up is not in it: read back, it would be a promise again.
    """
    kept = (
        observed.plan.replicas if observed.plan is not None else [unit.replica for unit in observed.current]
    )
    promised = [(replica, observed.planned) for replica in kept if observed.planned is not None]
    standing = [(unit.replica, unit.revision) for unit in observed.older]
    entries: dict[tuple[Any, ...], dict[str, Any]] = {}
    for replica, revision in (*promised, *standing):
        entries.setdefault(
            (revision, replica.index, replica.layout, replica.pods), replica_to_status(replica, revision)
        )
    if not entries:
        return {}
    replicas = sorted(
        entries.values(), key=lambda entry: (entry["revision"] != observed.planned, entry["index"])
    )
    replicas = replicas[:REPLICAS_MAX]
    layouts = dict.fromkeys(f"tp{entry['tensor']}/pp{entry['pipeline']}" for entry in replicas)
    gpus = sum(entry["tensor"] * entry["pipeline"] for entry in replicas if entry["product"] != CPU)
    return {"plan": {"replicas": replicas}, "gpus": gpus, "layout": cut(",".join(layouts), LAYOUT_MAX)}


def _waiting(observed: Observed) -> dict[str, Any] | None:
    plan = observed.plan
    if observed.suspended or plan is None or plan.refusal is None or not plan.refusal.waits:
        return None
    waiting = {
        "gpusShort": plan.refusal.gpus_short,
        "position": plan.position,
        "product": plan.refusal.product,
        "reason": str(plan.refusal.reason),
    }
    return {name: value for name, value in waiting.items() if value is not None}


def _columns(observed: Observed) -> dict[str, str]:
    """What `kubectl get` shows beside the phase."""
    spec, facts = observed.spec, observed.facts
    override = spec.architecture.override if spec and spec.architecture else None
    plugins = [each.image or each.requirement or "" for each in (spec and spec.plugins) or ()]
    return {
        "serving": f"{observed.answering}/{observed.wanted}" if spec else "",
        "architecture": facts.architecture if isinstance(facts, ModelFacts) else override or "",
        "plugins": cut(", ".join(plugins)),
        "url": service_url(observed) if observed.answering else "",
    }
