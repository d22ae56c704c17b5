"""The order in which steps are carried out: a kill, or another controller, may come between any two."""

from __future__ import annotations

from typing import Any

import pytest

from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import Conflict, NotFound, NotServed, Refused, Unavailable
from bowsprit.controller.book import Book
from bowsprit.controller.queue import WorkQueue
from bowsprit.controller.steps import FIRST_TO_GO, Deletion, Pin, Ranking, Steps
from bowsprit.controller.writer import NotLeading, Writer
from bowsprit.inventory.products import ProductTable
from bowsprit.render.names import PLACEMENT_GATE as GATE
from bowsprit.status.observed import ApplyError
from tests.unit.controller.objects import pod
from tests.unit.controller.test_steps import frame

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "team", "name": "applied"}}
STEPS = Steps(
    manifests=(SERVICE,),
    rankings=(Ranking(pod("ranked", "n1"), FIRST_TO_GO),),
    evictions=(Deletion("Pod", "evicted", "uid-evicted"),),
    deletions=(Deletion("Service", "deleted", "uid-deleted"),),
    pins=(Pin(pod("pinned"), "n1"),),
)
STATUS = {"phase": "Starting"}


class Recorder(KubeClient):
    """Writes down who is written to; an error where one is set."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.reads = 0
        self.errors: dict[str, Exception] = {}
        self.change: dict[str, Any] = {}
        """What a pod is like once it was written to."""

    async def get(self, *arguments: Any) -> dict[str, Any]:
        self.reads += 1
        name = arguments[-1]
        change = self.change if name in self.order else {}
        gates = [{"name": gate} for gate in change.get("gates", (GATE,))]
        found = _object(name, {"schedulingGates": gates})
        return {**found, "metadata": {**found["metadata"], "uid": change.get("uid", f"uid-{name}")}}

    async def apply(self, _: Any, manifest: Any) -> dict[str, Any]:
        return self._note(manifest["metadata"]["name"])

    async def merge_patch(self, _: Any, __: Any, name: str, *___: Any) -> dict[str, Any]:
        return self._note("status" if name == "llama" else name)

    async def json_patch(self, _: Any, __: Any, name: str, ___: Any) -> dict[str, Any]:
        return self._note(name)

    async def delete(self, _: Any, __: Any, name: str, **___: Any) -> None:
        self._note(name)

    async def create(self, *_: Any) -> dict[str, Any]:
        return self._note("event")

    def _note(self, name: str) -> dict[str, Any]:
        self.order.append(name)
        if name in self.errors:
            raise self.errors[name]
        return _object(name, {})


def _object(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    uid = f"uid-{name}"
    return {
        "metadata": {"namespace": "team", "name": name, "uid": uid, "resourceVersion": "1"},
        "spec": {"model": {"uri": "hf://a/b"}, **spec},
        "status": {},
    }


ALL = ["status", "ranked", "evicted", "applied", "deleted", "pinned"]


@pytest.fixture
async def recorder() -> Recorder:
    return Recorder()


async def carry_out(recorder: Recorder, leads: Any = lambda: True) -> tuple[ApplyError, ...]:
    book = Book(WorkQueue(), ProductTable())
    return await Writer(recorder, book, leads, lambda: "now").write(frame(), STATUS, STEPS)


async def test_promise_first_then_what_goes_then_what_comes_and_the_pins_last(recorder: Recorder) -> None:
    """Scaling down comes after the pods that must go are gone: or their ReplicaSet takes a sound one."""
    await carry_out(recorder)
    assert recorder.order == ALL


@pytest.mark.parametrize("name", ALL[:1] + ALL[2:])
async def test_nothing_is_written_after_a_write_that_has_failed(name: str, recorder: Recorder) -> None:
    recorder.errors[name] = Unavailable("down")
    with pytest.raises(Unavailable):
        await carry_out(recorder)
    assert recorder.order == ALL[: ALL.index(name) + 1]


@pytest.mark.parametrize("name", ["ranked", "evicted", "deleted", "pinned"])
@pytest.mark.parametrize("error", [NotFound("gone", 404), Conflict("another", 409)], ids=["gone", "replaced"])
async def test_what_somebody_else_was_faster_with_stops_nothing(
    name: str, error: Exception, recorder: Recorder
) -> None:
    recorder.errors[name] = error
    assert await carry_out(recorder) == ()
    assert recorder.order == ALL


REFUSED = {"ranked": "Pod", "evicted": "Pod", "applied": "Service", "deleted": "Service", "pinned": "Pod"}


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize(("name", "kind"), REFUSED.items(), ids=REFUSED)
async def test_what_the_api_server_refuses_is_told_in_its_words_and_stops_nothing(
    name: str, kind: str, status: int, recorder: Recorder
) -> None:
    """Only an object that is refused when it is applied may be the fault of the spec."""
    recorder.errors[name] = Refused("the policy says no", status)
    is_fault = name == "applied" and status != 403
    refusal = ApplyError(f"{kind}/{name}", "the policy says no", invalid=is_fault)
    assert await carry_out(recorder) == (refusal,)
    assert recorder.order == ALL


@pytest.mark.parametrize("name", ["ranked", "evicted", "deleted", "pinned"])
async def test_a_kind_that_is_not_served_says_nothing_about_an_object(name: str, recorder: Recorder) -> None:
    recorder.errors[name] = NotServed("404 page not found", 404)
    with pytest.raises(NotServed):
        await carry_out(recorder)


CHANGED_SINCE: dict[str, dict[str, Any]] = {
    "another pod has its name": {"uid": "uid-another"},
    "somebody else has lifted the gate": {"gates": ()},
    "another gate was lifted": {"gates": ("other", GATE)},
}


@pytest.mark.parametrize("change", CHANGED_SINCE.values(), ids=CHANGED_SINCE)
async def test_a_pin_that_failed_because_the_pod_changed_is_no_refusal(
    change: dict[str, Any], recorder: Recorder
) -> None:
    recorder.errors["pinned"] = Refused("the server rejected our request due to an error in our request", 422)
    recorder.change = change
    assert await carry_out(recorder) == ()


@pytest.mark.parametrize("number", range(len(ALL) + 1))
async def test_no_write_is_made_without_the_lease(number: int, recorder: Recorder) -> None:
    """It may be lost between any two requests: a process that is stopped in a read wakes up much later."""
    with pytest.raises(NotLeading):
        await carry_out(recorder, lambda: len(recorder.order) + recorder.reads < number)
    assert recorder.order == ALL[: min(number, len(ALL) - 1)], "the pod is read before it is pinned"
