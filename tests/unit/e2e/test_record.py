"""A recorded watch tells a model that was Ready without its ranks from one that was not."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from e2e.tests.record import Record


def pod(version: int, name: str, *, ready: str = "True", restarts: int = 0, **meta: Any) -> dict[str, Any]:
    status = {
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{"restartCount": restarts}],
    }
    labels = {"bowsprit.dev/model": "m"}
    metadata = {"name": name, "labels": labels, "resourceVersion": str(version), **meta}
    return {"kind": "Pod", "metadata": metadata, "status": status}


def model(version: int, ready: str) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "message": f"in {version}"}
    metadata = {"name": "m", "resourceVersion": str(version)}
    return {"kind": "ModelDeployment", "metadata": metadata, "status": {"conditions": [condition]}}


def recorded(*versions: dict[str, Any]) -> Record:
    record = Record(cast(Any, None))
    lines = [json.dumps({"type": each.pop("event", "MODIFIED"), "object": each}) for each in versions]
    record.follow(cast(Any, SimpleNamespace(stdout=io.StringIO("\n".join(lines)))))
    return record


BEFORE = (pod(1, "a"), pod(2, "b"), model(3, "True"))
AFTER = (model(8, "False"), pod(9, "b"), model(10, "True"))
AWAY = {
    "it is not Ready": pod(4, "b", ready="False"),
    "its container was started again": pod(4, "b", restarts=1),
    "it is on its way out": pod(4, "b", deletionTimestamp="2026-11-30T12:00:00Z"),
    "it is gone": {**pod(4, "b"), "event": "DELETED"},
}


@pytest.mark.parametrize("lost", AWAY.values(), ids=AWAY)
def test_a_model_may_not_be_ready_while_a_rank_is_away_because(lost: dict[str, Any]) -> None:
    recorded(*BEFORE, dict(lost), *AFTER).assert_not_ready_while_a_rank_is_away("m", 2)
    with pytest.raises(AssertionError, match="Ready in version 5, while 1 of 2 ranks were there"):
        recorded(*BEFORE, dict(lost), model(5, "True"), *AFTER).assert_not_ready_while_a_rank_is_away("m", 2)


def test_the_order_is_that_of_the_versions_whichever_watch_is_ahead() -> None:
    late = recorded(model(3, "True"), *AFTER, pod(1, "a"), pod(2, "b"), pod(4, "b", ready="False"))
    late.assert_not_ready_while_a_rank_is_away("m", 2)


def test_a_record_without_a_fault_proves_nothing() -> None:
    with pytest.raises(AssertionError, match="no rank was away"):
        recorded(*BEFORE).assert_not_ready_while_a_rank_is_away("m", 2)


def test_what_was_said_is_kept_once() -> None:
    assert recorded(model(3, "True"), model(3, "True"), model(8, "False")).messages("m") == "in 3\nin 8"
