"""What the operator does when there is nothing to do: 1,000 ModelDeployments, 800 placed and 200 waiting.

Two minutes are watched, chosen so that the regular comparison with the API server (every 300 s) falls into
them. Targets: no writes at all but the renewals of the operator's own Lease, and under 1% of a core.
"""

from __future__ import annotations

import time

from bench.figure import Figure
from bench.observe import settled
from bench.stage import FAST_FLAGS, Operator, Stage, a100_node, config_map, model, stage
from bowsprit.controller.settings import Settings
from e2e.cluster.nodes import create_nodes

MODELS = 1000
NODES = 100
WINDOW_S = 120.0
QUIET_S = 15.0


def measure() -> list[Figure]:
    with stage(FAST_FLAGS) as on:
        create_nodes(on.cluster.kubeconfig, [a100_node(f"bench-{index}") for index in range(NODES)])
        names = [f"model-{index:04d}" for index in range(MODELS)]
        pods = on.pods()
        on.create("api/v1/configmaps", [config_map(name) for name in names])
        on.create("apis/bowsprit.dev/v1alpha1/modeldeployments", [model(name) for name in names])
        with on.operator() as operator:
            pods.wait(8 * NODES)
            audit = on.audit()
            settled("the writes", lambda: audit.work().total(), QUIET_S)
            _until_resync_is_near(operator)
            return _watched(on, operator)


def _until_resync_is_near(operator: Operator) -> None:
    """Waits until the next resync falls into the middle of the window."""
    period = Settings().resync_s
    time.sleep((period - WINDOW_S / 2 - (time.monotonic() - operator.started)) % period)


def _watched(on: Stage, operator: Operator) -> list[Figure]:
    audit, passes, cpu, start = on.audit(), operator.passes, operator.cpu_seconds, time.monotonic()
    time.sleep(WINDOW_S)
    share = 100 * (operator.cpu_seconds - cpu) / (time.monotonic() - start)
    passes = operator.passes - passes
    written = audit.of_operator()
    renewals = sum(count for write, count in written.items() if write.resource == "leases")
    rest = written.total() - renewals
    everybody = audit.work()
    print(f"    writes of others: {dict(everybody - written)}")
    return [
        Figure(
            f"writes in {WINDOW_S:.0f} s with {MODELS:,} models and nothing to do",
            rest,
            f"besides {renewals} Lease renewals, in {passes} passes",
            "none",
            rest == 0,
        ),
        Figure("processor time meanwhile, one resync included", share, "% of a core", "under 1%", share < 1),
    ]
