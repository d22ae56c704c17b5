"""An inventory from files: what `kubectl get nodes,pods -A -o yaml` prints, already parsed.

Nothing in a file stops the reading of the rest: what is not understood is named in a Problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bowsprit.inventory.nodes import NodeView, node_facts
from bowsprit.inventory.pods import PodKey, PodView, pod_facts
from bowsprit.inventory.wire import mapping, mappings, text


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in an inventory that was not used."""

    where: str
    """Kind and name of the object, or its place in the input."""
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


_LISTS = {"List": "", "NodeList": "Node", "PodList": "Pod"}


def read_inventory(
    documents: Iterable[Mapping[str, Any]],
) -> tuple[list[NodeView], list[PodView], list[Problem]]:
    """Nodes and pods of v1 Node, Pod, List, NodeList and PodList documents.

    An object that comes twice counts once, as it came last.
    """
    nodes: dict[str, NodeView] = {}
    pods: dict[PodKey, PodView] = {}
    problems: list[Problem] = []
    ignored: Counter[str] = Counter()
    slices: list[Mapping[str, Any]] = []
    for place, kind, item in _objects(documents):
        name = text(mapping(item.get("metadata")).get("name"))
        if kind in ("Node", "Pod") and not name:
            problems.append(Problem(place, f"a {kind} without metadata.name; it is not counted"))
        elif kind == "Node":
            if name in nodes:
                problems.append(Problem(f"Node {name}", "comes more than once; the last one counts"))
            nodes[name] = node_facts(item)
        elif kind == "Pod":
            pod = pod_facts(item)
            if pod.key in pods:
                problems.append(
                    Problem(f"Pod {pod.namespace}/{name}", "comes more than once; the last one counts")
                )
            pods[pod.key] = pod
        elif kind == "ResourceSlice":
            slices.append(item)
        elif kind:
            ignored[kind] += 1
        else:
            problems.append(Problem(place, "not a Kubernetes object (no kind); it is not counted"))
    problems += _slice_notes(slices)
    for kind, count in sorted(ignored.items()):
        problems.append(Problem(kind, f"{count} ignored: an inventory is made of Nodes and Pods"))
    return list(nodes.values()), list(pods.values()), problems


def _objects(documents: Iterable[Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(place, kind, object); lists are opened one level deep, as kubectl writes them."""
    for number, document in enumerate(documents, start=1):
        kind = text(mapping(document).get("kind"))
        if kind not in _LISTS:
            yield f"document {number}", kind, mapping(document)
            continue
        items = document.get("items")
        for index, item in enumerate(items if isinstance(items, list) else ()):
            place = f"document {number}, item {index}"
            yield place, text(mapping(item).get("kind")) or _LISTS[kind], mapping(item)


def _slice_notes(slices: Iterable[Mapping[str, Any]]) -> Iterator[Problem]:
    """One line per node whose GPUs are offered through DRA: they are seen and not planned."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for entry in slices:
        spec = mapping(entry.get("spec"))
        devices = found.setdefault((text(spec.get("nodeName")), text(spec.get("driver"))), Counter())
        devices.update(_device_kind(device) for device in mappings(spec.get("devices")))
    for (node, driver), kinds in sorted(found.items()):
        listed = ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items())) or "no devices"
        where = f"Node {node}" if node else "ResourceSlice"
        yield Problem(
            where,
            f"{driver or 'a DRA driver'} offers {listed} through ResourceSlices, which Bowsprit "
            "does not plan; it needs the device plugin's nvidia.com/gpu or amd.com/gpu",
        )


def _device_kind(device: Mapping[str, Any]) -> str:
    """Its type and partition profile; v1beta1 nests both under `basic`."""
    attributes = mapping(mapping(device.get("basic") or device).get("attributes"))
    words = [text(mapping(attributes.get(name)).get("string")) for name in ("type", "partitionProfile")]
    return " ".join(word for word in words if word) or "device"
