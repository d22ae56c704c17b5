"""A cluster without LeaderWorkerSet: a condition says what to install, and then all goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.control_plane import ControlPlane
from tests.integration.arena import Arena
from tests.integration.conftest import install_api
from tests.integration.faults import wait_event
from tests.integration.life import uids

pytestmark = pytest.mark.integration


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Arena]:
    """An arena on a control plane of its own, without LeaderWorkerSet."""
    with ControlPlane(lws=False) as cluster:
        install_api(cluster)
        arena = Arena(cluster, "default", tmp_path)
        yield arena
        arena.stop_operators()


def test_what_needs_it_waits_without_gpus_and_goes_on_when_it_is_installed(bare: Arena) -> None:
    bare.nodes(2, gpus=2)
    operator = bare.operator()
    bare.model("group", parallelism={"pipeline": 2, "gpusPerPod": 1})
    bare.model("wide", parallelism={"tensor": 1, "pipeline": 3})
    condition = bare.wait_reason("group", "Ready", "LeaderWorkerSetNotInstalled")
    assert "2 GPUs of A100-80GB-PCIe in 2 pods" in condition["message"]
    assert "https://lws.sigs.k8s.io/docs/installation" in condition["message"]
    bare.wait_reason("wide", "Ready", "LeaderWorkerSetNotInstalled")
    assert bare.condition("group", "Stalled")["status"] == "False"
    wait_event(bare, "group", "LeaderWorkerSetNotInstalled")

    # They keep no GPU from others, and what one pod can hold is served.
    bare.model("single", replicas=2)
    bare.model("stages", parallelism={"pipeline": 2})
    bare.wait_ready("single", "stages")
    kept = uids(bare, "single") | uids(bare, "stages")
    bare.patch("single", {"replicas": 0})
    bare.wait_ready("single")

    bare.cluster.install_lws()
    bare.wait_ready("group")
    assert len(bare.pods("group")) == 2
    assert uids(bare, "stages") <= kept
    bare.wait_reason("wide", "Ready", "WaitingForGPUs")
    bare.patch("group", {"suspend": True})
    bare.patch("stages", {"suspend": True})
    bare.wait_ready("wide")
    assert operator.running
