"""GPUs that a pin takes, or may have taken, while the pod does not show it yet.

From the moment when a pin is decided its GPUs are nobody else's. A request to the API server can end without
an answer (a timeout, a reset, a proxy's 502) and be carried out all the same, even later: so they stay
reserved until the pod shows a node, is gone, or a later pin of the same pod is answered. Each pin tests the
pod's uid and gate, so no earlier one can come true after that.
"""

from __future__ import annotations

from collections.abc import Iterable

from bowsprit.cluster.cache import Cache, ObjectKey
from bowsprit.controller.groups import placed
from bowsprit.controller.steps import Pin, PinId, load_of_pins
from bowsprit.inventory.pods import PodView
from bowsprit.plan.spare import Thing


class Reservations:
    """`pods`: as they are known now."""

    def __init__(self, pods: Cache[PodView]) -> None:
        self._pods = pods
        self._pins: dict[PinId, Pin] = {}
        self._sent: set[PinId] = set()

    def decide(self, pins: Iterable[Pin]) -> None:
        """Some writer is about to make these pins."""
        self._pins |= {pin.id: pin for pin in pins}

    def send(self, pin: Pin) -> None:
        """The request goes out: from now on only an answer, or the pod itself, says how it ends."""
        self._sent.add(pin.id)

    def answered(self, pin: Pin) -> None:
        """The API server has said how it ended, and with it all earlier pins of this pod."""
        self._drop([each for each in self._pins if each.uid == pin.id.uid])

    def give_up(self, pins: Iterable[Pin]) -> None:
        """The writer has come to its end: what it has not sent, it never will."""
        self._drop(pin.id for pin in pins if pin.id not in self._sent)

    @property
    def unanswered(self) -> frozenset[PinId]:
        """Pins that were sent and may still come true."""
        self._forget()
        return frozenset(self._sent)

    def load(self) -> dict[Thing, int]:
        """What is reserved: GPUs, and what goes with them."""
        self._forget()
        return load_of_pins(self._pins.values())

    def _forget(self) -> None:
        """What has a node is counted there, and what is gone takes none."""
        self._drop([pin.id for pin in self._pins.values() if not self._is_open(pin)])

    def _is_open(self, pin: Pin) -> bool:
        pod = self._pods.get(ObjectKey(pin.pod.namespace, pin.pod.name))
        return pod is not None and pod.uid == pin.id.uid and not placed(pod)

    def _drop(self, ids: Iterable[PinId]) -> None:
        for each in ids:
            self._pins.pop(each, None)
            self._sent.discard(each)
