"""How long an engine may take to start and to stop.

Start: 600 s (vLLM's own VLLM_ENGINE_READY_TIMEOUT_S: imports, compilation, graph capture) plus the time to
fetch and load the weights at 100 MiB/s, a slow network volume. Weights of unknown size get two hours.

Progress: what one start may take, and 600 s for what comes before it: images are pulled, plugins installed.

Stop: new requests still arrive until every proxy has dropped the pod, and over connections that are open, and
vLLM answers 500 to what arrives while it drains. So the pod first goes on serving while it closes connections
(`leave` of the runtime: at least the pre-stop, at most the drain longer), then drains, then tears down:
terminationGracePeriodSeconds = pre-stop + drain + teardown. Whichever of the two its time goes to, a request
that was under way has pre-stop + drain to finish.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.render.wishes import template_spec_of

_BASE_SECONDS = 600
_BYTES_PER_SECOND = 100 * 2**20
_UNKNOWN_WEIGHTS_SECONDS = 7200
_PROBE_MARGIN_SECONDS = 60
_BEFORE_START_SECONDS = 600
STARTUP_PERIOD_SECONDS = 2
"""Short: nobody is served between the moment when vLLM is up and the probe that sees it."""
PROBE_PERIOD_SECONDS = 10

PRE_STOP_SECONDS = 10
_DRAIN_SECONDS = 60
_TEARDOWN_SECONDS = 20


def ready_seconds(weight_bytes: int | None) -> int:
    """Seconds that vLLM may take until it is ready."""
    if weight_bytes is None:
        return _UNKNOWN_WEIGHTS_SECONDS
    return _BASE_SECONDS + ceil(weight_bytes / _BYTES_PER_SECOND)


def startup_failures(weight_bytes: int | None) -> int:
    """failureThreshold of the startup probe: a margin over `ready_seconds`, so that vLLM's own message comes
    first."""
    return ceil((ready_seconds(weight_bytes) + _PROBE_MARGIN_SECONDS) / STARTUP_PERIOD_SECONDS)


def progress_seconds(spec: ModelDeploymentSpec, weight_bytes: int | None) -> int:
    """Seconds that a replica of a new revision has from its GPUs to being Ready: the user's, or long enough
    for one start."""
    deadline = spec.rollout.progress_deadline_seconds if spec.rollout else None
    return deadline or _BEFORE_START_SECONDS + ready_seconds(weight_bytes) + _PROBE_MARGIN_SECONDS


@dataclass(frozen=True, slots=True)
class Stopping:
    drain_seconds: int
    """vLLM --shutdown-timeout: in-flight requests may finish for so long."""
    grace_seconds: int
    """terminationGracePeriodSeconds of the pod."""


def stopping(spec: ModelDeploymentSpec) -> Stopping:
    """Fitted into the user's terminationGracePeriodSeconds when the template has one."""
    around = PRE_STOP_SECONDS + _TEARDOWN_SECONDS
    grace = template_spec_of(spec).get("terminationGracePeriodSeconds")
    if not isinstance(grace, int):
        grace = around + _DRAIN_SECONDS
    return Stopping(max(0, grace - around), grace)
