"""KWOK: plays the kubelet of the fake GPU nodes (nodes.py), so that pods there bind, run and end without
containers.

What it does with a node or pod is written in Stage objects. They live in the cluster, so a test can add its
own, for instance one whose selector matches an annotation and whose `next` makes the pod fail. The module's
own stages have no weight; give a competing Stage `weight: 1` and it always wins.
"""

from __future__ import annotations

from pathlib import Path

from e2e.cluster.health import is_healthy
from e2e.cluster.nodes import FAKE_NODE
from e2e.cluster.processes import Program
from e2e.cluster.programs import KWOK
from e2e.cluster.site import ADMINISTRATORS, Site

# Room for all pods at once: KWOK hands out addresses without looking at the range's end.
POD_RANGE = "10.128.0.0/9"
LEASE_SECONDS = 40


def kwok(site: Site) -> Program:
    """The KWOK controller, for the nodes that carry its annotation."""
    address = f"127.0.0.1:{site.port('kwok')}"
    flags = [
        f"--kubeconfig={site.user_kubeconfig('kwok', ADMINISTRATORS)}",
        "--manage-all-nodes=false",
        f"--manage-nodes-with-annotation-selector={'='.join(FAKE_NODE)}",
        "--enable-crds=Stage",
        f"--cidr={POD_RANGE}",
        # As a kubelet does. Without a lease the controller manager takes each node for dead after 50 seconds,
        # and its pods for not ready from then on.
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        "--node-ip=127.0.0.1",
        f"--server-address={address}",
    ]
    # An empty --config would read the home directory's kwok.yaml; a test cluster depends on no such file.
    environment = {"KWOK_WORKDIR": str(site.directory / "kwok")}
    return Program(
        "kwok",
        site.command("kwok", flags),
        site.log("kwok"),
        lambda: is_healthy(f"http://{address}/healthz"),
        environment,
    )


def stage_crd(site: Site) -> Path:
    """The definition of Stage."""
    return site.programs.manifest(KWOK, KWOK.manifests[0])


def stages(site: Site) -> list[Path]:
    """The module's stages: nodes become and stay Ready, pods run, Job pods complete, deleted pods go."""
    return [site.programs.manifest(KWOK, path) for path in KWOK.manifests[1:]]
