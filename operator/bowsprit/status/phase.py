"""One word for `kubectl get`: derived from the conditions, so that it can never say something else than
they do.
"""

from __future__ import annotations

from collections.abc import Mapping

from bowsprit.api.reasons import Condition, Reason
from bowsprit.api.v1alpha1 import Status
from bowsprit.status.conditions import TRUE, Verdict


def phase(verdicts: Mapping[Condition, Verdict]) -> Status:
    """The first that holds, from what a user must know first."""
    rules = (
        (verdicts[Condition.STALLED].status == TRUE, Status.FAILED),
        (verdicts[Condition.READY].reason == Reason.SUSPENDED, Status.SUSPENDED),
        (verdicts[Condition.READY].status == TRUE, Status.READY),
        (verdicts[Condition.GPUS_RESERVED].reason == Reason.WAITING_FOR_GPUS, Status.WAITING),
        (verdicts[Condition.PROGRESSING].reason == Reason.ROLLING_OUT, Status.UPDATING),
        (verdicts[Condition.PROGRESSING].status != TRUE, Status.PENDING),
        (verdicts[Condition.PLANNED].status == TRUE, Status.STARTING),
    )
    return next((word for holds, word in rules if holds), Status.PENDING)
