"""What cannot be started while LeaderWorkerSet is not installed: replicas of several pods.

Such a replica would only keep GPUs from others, so it is refused instead of planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bowsprit.api.reasons import Reason
from bowsprit.plan.ground import Site
from bowsprit.plan.layout import Cut
from bowsprit.plan.result import Refusal
from bowsprit.plan.wish import ExplicitLayout
from bowsprit.plan.words import count, short


def in_one_pod(found: Sequence[tuple[Site, Cut]], explicit: ExplicitLayout) -> list[tuple[Site, Cut]]:
    """The layouts that one pod can hold, as one pod; the user's own gpusPerPod is kept."""
    if explicit.gpus_per_pod is not None:
        return [(site, cut) for site, cut in found if cut.pods == 1]
    return [(site, replace(cut, pod_gpus=cut.gpus)) for site, cut in found if cut.gpus <= site.largest]


def lws_missing(site: Site, cut: Cut) -> Refusal:
    """`cut`: the cheapest layout; none can be had in one pod."""
    message = (
        f"A replica takes {count(cut.gpus, 'GPU')} of {short(site.product)} in {cut.pods} pods "
        f"(tp={cut.tensor}, pp={cut.pipeline}), and what starts such groups, LeaderWorkerSet "
        "(leaderworkerset.x-k8s.io/v1), is not installed. "
        "Install it (https://lws.sigs.k8s.io/docs/installation); Bowsprit goes on by itself then."
    )
    if cut.gpus <= site.largest:
        message += f" Or set spec.parallelism.gpusPerPod to {cut.gpus}: one pod on one node."
    return Refusal(Reason.LWS_NOT_INSTALLED, message, gpus_wanted=cut.gpus, product=site.product, waits=False)
