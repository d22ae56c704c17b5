"""Pods that ask for more than was rendered: a webhook, a RuntimeClass or a LimitRange has added to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bowsprit.plan.needs import amount_words
from bowsprit.status.text import listed


class More(NamedTuple):
    resource: str
    asked: int
    """What the pod asks for now, in the units of plan.needs."""
    rendered: int


@dataclass(frozen=True, slots=True)
class Growth:
    pod: str
    """One that shows it."""
    more: tuple[More, ...]


def growth_words(growth: Growth) -> str:
    """Why a plan reckons with more than anybody has written, and what can be done."""
    asked = [
        f"{amount_words(more.resource, more.asked)} instead of {amount_words(more.resource, more.rendered)}"
        for more in growth.more
    ]
    return (
        f"Pod {growth.pod} asked for {listed(asked)}: a webhook, a RuntimeClass or a LimitRange changed it. "
        "Make room for that, or change what adds it; new pods are tried every 5 minutes."
    )
