"""One real node: its namespaces and the programs in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.cluster.real import cgroups, network
from e2e.cluster.real.containerd import containerd, import_image
from e2e.cluster.real.kubelet import kubelet
from e2e.cluster.real.namespaces import Namespaces, Nested
from e2e.cluster.real.network import NodeAddress
from e2e.cluster.real.proxy import kube_proxy
from e2e.cluster.site import Site
from e2e.images.store import Image

FIRST_PROCESS = "process"
"""File in a node's folder that names the first process of its namespaces."""


class RealNode:
    """A node. Its programs are made when they are asked for, once `holder` runs."""

    def __init__(
        self, site: Site, name: str, address: NodeAddress, pause: Image, mounts: Mapping[str, Path]
    ) -> None:
        self.name, self.address = name, address
        self._site, self._pause, self._mounts = site, pause, mounts
        self._namespaces = Namespaces(site, name)

    @property
    def holder(self) -> Nested:
        """The program with whose end the node is gone, as a machine is that loses its power."""
        return self._namespaces.holder

    def connect(self, others: Sequence[NodeAddress]) -> None:
        """Brings the node into the network."""
        cgroups.create(self.name)
        network.connect(self.address, self._namespaces.process)
        network.connect_pods(self.address, others, self._namespaces.process)
        (self._namespaces.folder / FIRST_PROCESS).write_text(str(self._namespaces.process))

    def containerd(self) -> Nested:
        configuration = network.write_pod_network(self.address, self._namespaces.folder / "net.d")
        return containerd(self._site, self._namespaces, configuration, self._pause.reference, self._mounts)

    def kubelet(self) -> Nested:
        return kubelet(self._site, self._namespaces, self.address)

    def kube_proxy(self) -> Nested:
        return kube_proxy(self._site, self._namespaces, self.address)

    def import_image(self, image: Image) -> None:
        import_image(self._namespaces.process, image)

    def command(self, *command: str) -> list[str]:
        """What runs a command on the node."""
        return self._namespaces.command(command)


def import_images(cluster: Path, images: Sequence[Image]) -> None:
    """Puts images into all nodes of a cluster, whoever has started it. `cluster`: its directory."""
    for first_process in sorted(cluster.glob(f"nodes/*/{FIRST_PROCESS}")):
        for image in images:
            import_image(int(first_process.read_text()), image)
