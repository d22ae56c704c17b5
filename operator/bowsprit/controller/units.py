"""Groups and plans as the status wants to hear of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bowsprit.controller.frame import Frame
from bowsprit.controller.groups import Group, placed
from bowsprit.controller.replicas import holding, remains
from bowsprit.inventory.containers import Trouble
from bowsprit.inventory.pods import PodView
from bowsprit.plan.result import ReplicaPlan
from bowsprit.render.labels import REVISION
from bowsprit.status.findings import UNSCHEDULABLE
from bowsprit.status.observed import PodFailure, Unit


def units_of(
    frame: Frame, is_lost: Callable[[str], bool], refused: Callable[[Group], PodFailure | None]
) -> tuple[Unit, ...]:
    """One Unit per group, and per replica whose workload is gone.

    `is_lost` says of a node that it is gone or not Ready; `refused`, how a group's last placement failed.
    """
    units = [
        _unit(group, plan, leaving, is_lost, refused(group) or _failure(group))
        for group, plan, leaving in _pairs(frame)
    ]
    return (*units, *(_straggler(pods) for pods in frame.stragglers))


def _pairs(frame: Frame) -> Iterator[tuple[Group, ReplicaPlan, bool]]:
    replicas = frame.replicas
    for group, plan in (*replicas.standing, *replicas.outgoing, *replicas.partial):
        yield group, plan, False
    for group, plan in replicas.leaving:
        yield group, plan, True
    for group in replicas.lost:
        yield group, holding(group), True
    begun = {plan for _, plan in replicas.partial}
    owed = [plan for plan in replicas.promised if plan not in begun]
    for group in replicas.waiting:
        promise = next((plan for plan in owed if plan.layout == group.layout), None)
        if promise is not None and frame.target and group.workload.revision == frame.target.hash:
            owed.remove(promise)
            yield group, promise, False


def _straggler(pods: Sequence[PodView]) -> Unit:
    revision = pods[0].labels.get(REVISION, "")
    return Unit(remains(pods), revision, pods=len(pods), pinned=len(pods), leaving=True)


def _unit(
    group: Group,
    plan: ReplicaPlan,
    leaving: bool,
    is_lost: Callable[[str], bool],
    failure: PodFailure | None,
) -> Unit:
    alive = [pod for pod in group.pods if not pod.finished and not pod.terminating]
    return Unit(
        replica=plan,
        revision=group.workload.revision,
        pods=len(alive),
        pinned=sum(1 for pod in alive if placed(pod)),
        bound=sum(1 for pod in alive if pod.bound),
        ready=sum(1 for pod in alive if pod.ready),
        failure=failure,
        lost_nodes=tuple(sorted({node for node in group.nodes if is_lost(node)})),
        leaving=leaving,
    )


def _failure(group: Group) -> PodFailure | None:
    for pod in group.pods:
        if group.layout.on_cpus and pod.reason == UNSCHEDULABLE:
            return PodFailure(pod.reason, pod.message)
        if pod.phase == "Failed":
            return PodFailure(pod.reason or "Failed", pod.message, binding=bool(pod.reason))
        if pod.trouble is not None and not pod.ready and not pod.terminating:
            return _told(pod.name, pod.trouble)
    return None


def _told(pod: str, trouble: Trouble) -> PodFailure:
    message = f"pod {pod}: {trouble.message}"
    return PodFailure(trouble.reason, message, ended=trouble.ended, times=trouble.times)
