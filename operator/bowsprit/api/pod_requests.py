"""What a pod takes of its node, counted as kube-scheduler counts it (k8s.io/component-helpers PodRequests).

Read from pods that run (inventory) and from pods that are still to be made (render), by one rule for both. An
amount is a whole number: thousandths of a CPU, bytes, or units of an extended resource. The pod itself takes one
of `pods`, and a host port is a resource of which a node has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from math import ceil
from typing import Any

CPU = "cpu"
PODS = "pods"
HOST_PORT = "host port "
"""Before protocol and number: `host port TCP/8000`. The address is left out: any two may be the same."""

_QUANTITY = re.compile(
    r"([0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:([eE][+-]?[0-9]{1,2})|(n|u|m|k|[KMGTPE]i|[MGTPE])?)",
    re.ASCII,
)
_SUFFIXES = {
    None: Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_MOST = 10**20


def amount(resource: str, quantity: object) -> int | None:
    """A Kubernetes quantity in the unit of its resource, rounded up; None when it is none, or negative."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        return None
    return _amount(str(quantity).strip(), 1000 if resource == CPU else 1)


@lru_cache(maxsize=65536)
def _amount(text: str, scale: int) -> int | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number = Decimal(f"{match[1]}{match[2] or ''}") * _SUFFIXES[match[3]]
    return ceil(number * scale) if number < _MOST else None


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Everything that a pod with this spec asks of its node; what cannot be read counts nothing.

    Containers run together with the sidecars; an init container runs with the sidecars that stand before it.
    The pod asks for the larger of both, or for more when pod-level resources say so; overhead comes on top.
    """
    sidecars: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in _mappings(spec.get("initContainers")):
        asked = _requests(container)
        if _is_sidecar(container):
            sidecars = _sum(sidecars, asked)
            most = _larger(most, sidecars)
        else:
            most = _larger(most, _sum(sidecars, asked))
    together = sidecars
    for container in _mappings(spec.get("containers")):
        together = _sum(together, _requests(container))
    whole = _larger(_larger(most, together), _requests(spec))
    overhead = spec.get("overhead")
    if isinstance(overhead, Mapping):
        whole = _sum(whole, _amounts(overhead))
    return {**whole, PODS: 1, **dict.fromkeys(_host_ports(spec), 1)}


def _requests(holder: Mapping[str, Any]) -> dict[str, int]:
    """Of a container, or of a pod as a whole; a limit alone is a request too."""
    resources = holder.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    requests, limits = resources.get("requests"), resources.get("limits")
    return _amounts({**(limits if isinstance(limits, Mapping) else {}),
                     **(requests if isinstance(requests, Mapping) else {})})  # fmt: skip


def _amounts(quantities: Mapping[Any, Any]) -> dict[str, int]:
    return {
        name: asked
        for name, quantity in quantities.items()
        if isinstance(name, str) and (asked := amount(name, quantity))
    }


def _host_ports(spec: Mapping[str, Any]) -> Iterator[str]:
    """In the host's network every port of a container is one of the host's."""
    on_host = spec.get("hostNetwork") is True
    sidecars = [each for each in _mappings(spec.get("initContainers")) if _is_sidecar(each)]
    for container in (*_mappings(spec.get("containers")), *sidecars):
        for port in _mappings(container.get("ports")):
            number = port.get("hostPort") or (port.get("containerPort") if on_host else None)
            if isinstance(number, int) and number > 0:
                yield f"{HOST_PORT}{port.get('protocol') or 'TCP'}/{number}"


def _is_sidecar(container: Mapping[str, Any]) -> bool:
    return container.get("restartPolicy") == "Always"


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
