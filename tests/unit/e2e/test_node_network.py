"""The addresses of the real nodes, their pods and the Services never overlap."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from e2e.cluster.kubernetes import SERVICE_RANGE
from e2e.cluster.real.network import HOST_ADDRESS, POD_RANGE, NodeAddress, pod_network

NODES = [NodeAddress(index) for index in range(1, 9)]


def test_each_node_has_an_address_and_pods_of_its_own() -> None:
    assert len({HOST_ADDRESS, *(node.address for node in NODES)}) == 1 + len(NODES)
    ranges = [IPv4Network(node.pods) for node in NODES]
    assert not any(a.overlaps(b) for a in ranges for b in ranges if a is not b)


def test_pods_are_told_from_nodes_and_services_by_their_addresses() -> None:
    """kube-proxy masquerades what comes from elsewhere than from pods, so the host must be no pod to it."""
    pods = IPv4Network(POD_RANGE)
    assert all(IPv4Network(node.pods).subnet_of(pods) for node in NODES)
    assert not any(IPv4Address(each) in pods for each in (HOST_ADDRESS, *(node.address for node in NODES)))
    assert not pods.overlaps(IPv4Network(SERVICE_RANGE))


def test_names_of_links_are_short_enough_for_linux() -> None:
    assert all(len(node.link) < 16 for node in NODES)


def test_pods_get_their_addresses_from_their_nodes_range() -> None:
    addresses = pod_network(NODES[1])["plugins"][0]["ipam"]
    assert addresses["ranges"] == [[{"subnet": NODES[1].pods}]]
