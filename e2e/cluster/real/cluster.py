"""A control plane with nodes that run containers.

    with RealCluster(images) as cluster:
        cluster.kubectl("apply", "-f", "pod.yaml")

One at a time on a machine, because the addresses are fixed.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from e2e.cluster.background import NotPossible
from e2e.cluster.control_plane import READY_SECONDS, ControlPlane
from e2e.cluster.kubernetes import SERVICE_RANGE
from e2e.cluster.nodes import gpu_node
from e2e.cluster.programs import CONTROL_PLANE, COREDNS, NODE, ProgramSet
from e2e.cluster.real import leftovers, network
from e2e.cluster.real.dns import coredns
from e2e.cluster.real.node import RealNode
from e2e.cluster.real.packages import ensure_packages
from e2e.images.store import Image

LOCK = Path("/run/lock/bowsprit-real-nodes")


class RealCluster(ControlPlane):
    """A control plane, CoreDNS, and nodes with a kubelet, containerd and kube-proxy each."""

    program_sets: Sequence[ProgramSet] = (*CONTROL_PLANE, NODE, COREDNS)

    def __init__(
        self,
        pause: Image,
        images: Sequence[Image] = (),
        mounts: Mapping[str, Path] | None = None,
        directory: Path | None = None,
        *,
        nodes: Sequence[str] = ("node-a", "node-b"),
        definitions: Sequence[str] = (),
    ) -> None:
        """
        pause: the image that holds a pod's namespaces.
        images: what else the nodes' containerd is given; no node can pull anything.
        mounts: path in every container -> a folder of this machine that is mounted there, read-only.
        """
        super().__init__(directory, definitions=definitions, address=network.HOST_ADDRESS)
        self._pause = pause
        self._images = images
        self._mounts = mounts or {}
        self._names = nodes
        self.nodes: dict[str, RealNode] = {}

    def start(self) -> Self:
        ensure_packages()
        self._claim_the_machine()
        try:
            leftovers.remove()
            self._watch = leftovers.Watch()
            network.create_bridge()
            super().start()
        except BaseException:
            self._lock.close()
            raise
        return self

    def declare_gpus(self, node: str, *, product: str, memory_mib: int, count: int) -> None:
        """Lets a node say that it had GPUs: labels as the GPU operator leaves them, and the resource.

        Containers that ask for them find none.
        """
        fake = gpu_node(node, product=product, memory_mib=memory_mib, count=count)
        resources = {"nvidia.com/gpu": str(count)}
        status = {"capacity": resources, "allocatable": resources}
        self.kubectl(
            "patch", "node", node, "--patch", json.dumps({"metadata": {"labels": fake["metadata"]["labels"]}})
        )
        self.kubectl("patch", "node", node, "--subresource=status", "--patch", json.dumps({"status": status}))

    def _start_all(self) -> None:
        super()._start_all()
        self._add(coredns(self._site))
        self.nodes = {
            name: RealNode(self._site, name, network.NodeAddress(index), self._pause, self._mounts)
            for index, name in enumerate(self._names, start=1)
        }
        with ThreadPoolExecutor() as pool:  # unpacking the images takes longest
            for started in [pool.submit(self._start_node, node) for node in self.nodes.values()]:
                started.result()
        network.route_services(SERVICE_RANGE, next(iter(self.nodes.values())).address)
        for program in self.programs.values():
            program.wait_ready(READY_SECONDS)

    def _start_node(self, node: RealNode) -> None:
        self._add(node.holder)
        node.holder.wait_ready(READY_SECONDS)
        node.connect([other.address for other in self.nodes.values() if other is not node])
        runtime = node.containerd()
        self._add(runtime)
        runtime.wait_ready(READY_SECONDS)
        for image in (self._pause, *self._images):
            node.import_image(image)
        self._add(node.kubelet())
        self._add(node.kube_proxy())

    def _abandon(self) -> None:
        super()._abandon()
        self._watch.release()
        self._lock.close()

    def _claim_the_machine(self) -> None:
        self._lock = LOCK.open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            self._lock.close()
            raise NotPossible(
                "A cluster with real nodes runs on this machine already, and there can be one only. Stop it "
                "with `make e2e-stop`, or wait for its end."
            ) from taken
