"""What a pod needs of its node beside the GPUs of its layout: CPU, memory, ephemeral storage, a place among
its pods, host ports.

On GPU nodes these seldom bind, so planning is about GPUs; but a pod that is pinned to a node without room for
it never starts. Amounts are whole numbers: thousandths of a CPU, bytes, units (bowsprit.api.pod_requests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bowsprit.api.pod_requests import CPU, HOST_PORT, PODS

Needs = tuple[tuple[str, int], ...]
"""(resource, amount) of one pod, by name."""

ORDINARY = frozenset({CPU, "memory", "ephemeral-storage", PODS})
"""Every kubelet says how much it has of these; a node that does not was written by hand, and they do not bind
there."""
PLENTY = 2**63
"""More than any node has."""


def largest(pods: Iterable[Needs]) -> Needs:
    """Of each resource as much as the pod that needs most of it."""
    most: dict[str, int] = {}
    for resource, amount in (need for needs in pods for need in needs):
        most[resource] = max(amount, most.get(resource, 0))
    return tuple(sorted(most.items()))


def left(room: Mapping[str, int], resource: str) -> int:
    """What is left of a resource on a node whose room is known as far as `room` says."""
    known = room.get(resource)
    if known is not None:
        return known
    if resource.startswith(HOST_PORT):
        return 1
    return PLENTY if resource in ORDINARY else 0


def lacking(room: Mapping[str, int], needs: Needs) -> Needs:
    """The needs of one pod that `room` does not meet."""
    return tuple((resource, asked) for resource, asked in needs if left(room, resource) < asked)


def amount_words(resource: str, amount: int) -> str:
    """A number with its unit: 3.2 CPUs, 64 GiB of memory, 110 pods."""
    if resource == CPU:
        return f"{amount / 1000:g} CPUs"
    if resource == PODS:
        return f"{amount} pods"
    if resource in ORDINARY or resource.startswith("hugepages-"):
        return f"{gib_words(amount)} GiB of {resource}"
    return f"{amount} {resource}"


def gib_words(amount: int) -> str:
    return f"{amount / 2**30:.4g}"


def shortfall(room: Mapping[str, int], offers: Mapping[str, int], needs: Needs) -> str:
    """What a node lacks for a pod, with numbers: `3.2 of 8 CPUs free`; empty when it lacks nothing."""
    return ", ".join(_lack(room, offers, resource) for resource, _ in lacking(room, needs))


def _lack(room: Mapping[str, int], offers: Mapping[str, int], resource: str) -> str:
    if resource.startswith(HOST_PORT):
        return f"{resource} is taken"
    there = max(0, left(room, resource))
    if resource == CPU:
        return f"{there / 1000:g} of {amount_words(CPU, offers.get(CPU, 0))} free"
    if resource in ORDINARY and resource != PODS:
        return f"{gib_words(there)} of {amount_words(resource, offers.get(resource, 0))} free"
    return f"{there} of {amount_words(resource, offers.get(resource, 0))} free"
