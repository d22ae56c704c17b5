"""The words of every moment in a model's life, as a reader of `kubectl describe` meets them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from bowsprit.status.compute import compute
from tests.unit.status.examples import LIFE

GOLDEN = Path(__file__).with_name("golden") / "life.yaml"
NOW = "2026-11-30T12:00:00Z"


def words(status: dict[str, Any]) -> dict[str, Any]:
    """What a person reads of a status."""
    return {
        "phase": status["phase"],
        "ready": f"{status['readyReplicas']}/{status['replicas']}",
        **{name: status[name] for name in ("url", "gpus", "layout", "waiting") if name in status},
        "conditions": {
            each["type"]: f"{each['status']} {each['reason']}: {each['message']}"
            for each in status["conditions"]
        },
    }


@pytest.mark.parametrize("moment", LIFE)
def test_the_status_says(moment: str) -> None:
    said = words(compute(LIFE[moment], None, NOW))
    if os.environ.get("BOWSPRIT_WRITE_GOLDEN"):
        golden = yaml.safe_load(GOLDEN.read_text()) if GOLDEN.exists() else {}
        GOLDEN.parent.mkdir(exist_ok=True)
        known = {name: golden[name] for name in LIFE if name in golden}
        GOLDEN.write_text(yaml.safe_dump({**known, moment: said}, sort_keys=False, width=110))
    assert said == yaml.safe_load(GOLDEN.read_text())[moment]


def test_the_golden_file_holds_no_moment_that_is_gone() -> None:
    assert set(yaml.safe_load(GOLDEN.read_text())) == set(LIFE)
