"""`bowsprit preflight`: the operator's own Job, run by hand, and its report in words.

It needs no operator and changes no ModelDeployment: a plugin can be proven on a cluster before anything is
applied. The Job goes when the report is there; one that was left behind goes by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from bowsprit.api.cures import CURES
from bowsprit.api.defaults import PREFLIGHT_SECONDS
from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.cli.options import ClusterRef
from bowsprit.cli.planning import key_of
from bowsprit.cli.reaching import cluster_errors
from bowsprit.cluster.client import KubeClient, connect
from bowsprit.cluster.resources import JOBS, PODS
from bowsprit.facts.report import Fault, Report, Verdict, parse_report
from bowsprit.plan.key import ModelKey
from bowsprit.render.owner import Owner
from bowsprit.render.preflight import preflight_job, preflight_key
from bowsprit.status.attempt import Attempt, Stage, attempt_of
from bowsprit.status.preflight import Proof, unproven

LOOK_S = 1.0
LEFT_BEHIND_S = 600
"""The Job goes by itself so long after its end, when nobody has taken it away."""

FINE, NO_VERDICT, BROKEN = 0, 1, 3

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    key: ModelKey
    report: Report | None
    text: str
    """The report as it was told; else why there is none."""

    @property
    def exit_code(self) -> int:
        if self.report is None:
            return NO_VERDICT
        return BROKEN if self.report.verdict is Verdict.BROKEN else FINE


class Terms(NamedTuple):
    """How models are proven."""

    runtime_image: str
    time_limit_s: int = PREFLIGHT_SECONDS
    look_s: float = LOOK_S


def prove(
    deployments: tuple[ModelDeployment, ...], terms: Terms, cluster: ClusterRef, tell: Tell
) -> list[Outcome]:
    """Runs the Jobs of all models at the same time. Raises BadInput when the cluster cannot be reached."""
    with cluster_errors("see that `kubectl auth can-i create jobs` says yes here"):
        return asyncio.run(_prove_all(deployments, terms, cluster, tell))


async def _prove_all(
    deployments: tuple[ModelDeployment, ...], terms: Terms, cluster: ClusterRef, tell: Tell
) -> list[Outcome]:
    client = await connect(*cluster)
    try:
        return list(await asyncio.gather(*(prove_one(client, each, terms, tell) for each in deployments)))
    finally:
        await client.close()


async def prove_one(client: KubeClient, deployment: ModelDeployment, terms: Terms, tell: Tell) -> Outcome:
    key = key_of(deployment)
    job = await client.create(JOBS, key.namespace, _job(deployment, terms))
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    tell(f"{key}: Job {name} runs in namespace {key.namespace}")
    try:
        return await _outcome(client, key, name, tell, terms.look_s)
    finally:
        await client.delete(JOBS, key.namespace, name, uid=uid)


def _job(deployment: ModelDeployment, terms: Terms) -> dict[str, Any]:
    """Without an owner: it belongs to whoever has called."""
    key, spec = key_of(deployment), deployment.spec
    owner, judged = Owner(key.name, key.namespace, ""), preflight_key(spec, key.namespace)
    job = preflight_job(owner, judged, spec, terms.runtime_image, terms.time_limit_s)
    meta = {"generateName": f"{key.name}-preflight-", "namespace": key.namespace}
    return {**job, "metadata": meta, "spec": {**job["spec"], "ttlSecondsAfterFinished": LEFT_BEHIND_S}}


async def _outcome(client: KubeClient, key: ModelKey, name: str, tell: Tell, look_s: float) -> Outcome:
    told = ""
    while True:
        job = await client.get(JOBS, key.namespace, name)
        attempt = await _newest(client, key.namespace, name)
        if attempt is not None and attempt.stage is Stage.REPORTED:
            return Outcome(key, parse_report(attempt.report), attempt.report)
        said = unproven(Proof(attempt=attempt)).message
        if _is_over(job):
            return Outcome(key, None, said)
        if said != told:
            tell(f"{key}: {said}")
            told = said
        await asyncio.sleep(look_s)


async def _newest(client: KubeClient, namespace: str, job: str) -> Attempt | None:
    pods = client.pages(PODS, namespace=namespace, selector=f"batch.kubernetes.io/job-name={job}")
    found = [attempt_of(pod) async for page in pods for pod in page["items"]]
    attempts = [attempt for attempt in found if attempt is not None]
    return max(attempts, key=lambda attempt: (attempt.created, attempt.name), default=None)


def _is_over(job: dict[str, Any]) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """The JSON of one model: the report as the runtime told it, or why there is none."""
    head = {"namespace": outcome.key.namespace, "name": outcome.key.name}
    if outcome.report is None:
        return {**head, "report": None, "message": outcome.text}
    return {**head, "report": json.loads(outcome.text)}


def outcome_parts(outcome: Outcome) -> Iterator[RenderableType]:
    """For people."""
    report = outcome.report
    if report is None:
        yield Text(f"{outcome.key}: no verdict: {outcome.text}", style="red")
        return
    style = {Verdict.BROKEN: "red", Verdict.UNJUDGED: "yellow"}.get(report.verdict, "green")
    yield Text.assemble((str(outcome.key), "bold"), ": ", (str(report.verdict), style))
    if report.engine:
        yield "  Engine: " + ", ".join(f"{name} {version}" for name, version in report.engine.items())
    if isinstance(architecture := report.facts.get("architecture"), str):
        yield f"  Architecture: {architecture}"
    for plugin in report.plugins:
        names = ", ".join(plugin.architectures) or "no architecture"
        more = f" and {plugin.more} more" if plugin.more else ""
        yield f"  Plugin {plugin.name} {plugin.version}: {names}{more}"
    for fault in report.faults:
        yield from _fault_parts(fault)
    for warning in report.warnings:
        yield f"  Warning: {warning}"


def _fault_parts(fault: Fault) -> Iterator[RenderableType]:
    yield Text(f"  {fault.reason} ({fault.blame}): {fault.message}")
    cure = next((cure for reason, cure in CURES.items() if reason == fault.reason), None)
    if cure:
        yield f"    {cure}"
