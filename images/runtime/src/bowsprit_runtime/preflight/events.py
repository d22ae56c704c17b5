"""What the judging child tells its parent: one JSON line per event, written at once, so that nothing is lost.

A child that hangs or dies has told everything up to there, and in which step it was. `Judged` adds up.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bowsprit_runtime.report import Fault, Report


class Teller:
    """The child's end of the pipe. Uses the bare descriptor: plugins replace sys.stdout and print."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.broken = False
        """Whether a fault was told."""

    def _tell(self, **event: Any) -> None:
        line = json.dumps(event, ensure_ascii=True) + "\n"
        os.write(self._descriptor, line.encode())

    @contextmanager
    def step(self, doing: str, *, plugin: str = "") -> Iterator[None]:
        """What is done inside; `plugin` names the one whose code runs meanwhile."""
        self._tell(step=doing, plugin=plugin)
        yield
        self._tell(step="", plugin="")

    def fault(self, fault: Fault) -> None:
        self.broken = True
        self._tell(fault=fault.as_json())

    def warn(self, text: str) -> None:
        self._tell(warning=text)

    def engine(self, **versions: Any) -> None:
        self._tell(engine=versions)

    def plugins(self, plugins: list[dict[str, Any]]) -> None:
        self._tell(plugins=plugins)

    def facts(self, **facts: Any) -> None:
        self._tell(facts=facts)

    def done(self) -> None:
        self._tell(done=True)


@dataclass
class Judged:
    """All that was told so far."""

    report: Report = field(default_factory=Report)
    step: str = "starting"
    plugin: str = ""
    """Whose code runs in this step; empty when nobody's."""
    step_began: float = field(default_factory=time.monotonic)
    done: bool = False

    def take(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        report = self.report
        if "step" in event:
            self.step, self.plugin, self.step_began = event["step"], event["plugin"], time.monotonic()
        elif "fault" in event:
            report.faults.append(Fault(**event["fault"]))
        elif "warning" in event:
            if event["warning"] not in report.warnings:
                report.warnings.append(event["warning"])
        elif "plugins" in event:
            report.plugins = event["plugins"]
        elif "done" in event:
            self.done = True
        else:
            report.engine.update(event.get("engine", {}))
            report.facts.update(event.get("facts", {}))
