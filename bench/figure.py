"""What a bench answers: figures beside their references."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    unit: str
    target: str
    """The bound that the issue sets, in words; empty for figures that only inform."""
    met: bool | None
    """None when there is no target."""
    reference: str = ""
    """What the figure stands beside: another method, measured in the same run."""

    def __str__(self) -> str:
        verdict = "" if self.met is None else "  met" if self.met else "  MISSED"
        target = f"  (target {self.target}{verdict})" if self.target else ""
        beside = f"  beside {self.reference}" if self.reference else ""
        return f"{self.what}: {self.value:,.4g} {self.unit}{target}{beside}"
