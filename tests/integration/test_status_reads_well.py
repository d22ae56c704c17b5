"""What a person sees of a model with kubectl, over its whole life."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.arena import MDEP, PCIE, Arena, Json
from tests.integration.life import TWO_PODS, become_ready, engine, events, never_ready

pytestmark = pytest.mark.integration


def columns(text: str) -> list[dict[str, str]]:
    """The rows of a kubectl table by the names in its head."""
    head, *rows = text.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+(?: \S+)*", head)]
    ends = [*starts[1:], None]
    names = [head[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return [
        dict(zip(names, (row[s:e].strip() for s, e in zip(starts, ends, strict=True)), strict=True))
        for row in rows
    ]


def test_kubectl_get_shows_what_runs_and_what_waits(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat", **TWO_PODS)
    stage.wait_ready("chat")
    stage.model("waiting", architecture={"override": "MyOptForCausalLM"})
    stage.wait_reason("waiting", "GPUsReserved", "WaitingForGPUs")
    stage.wait("the columns", lambda: "WaitingForGPUs" in stage.kubectl("get", "mdep", "-o", "wide"))
    chat, waiting = columns(stage.kubectl("get", "mdep", "-o", "wide"))
    assert chat.pop("AGE")
    assert chat == {
        "NAME": "chat",
        "MODEL": "hf://example/model",
        "PHASE": "Ready",
        "READY": "True",
        "GPUS": "2",
        "LAYOUT": "tp1/pp2",
        "REPLICAS": "1/1",
        "ARCH": "LlamaForCausalLM",
        "PLUGINS": "",
        "REASON": "ReplicasReady",
        "URL": f"http://chat.{stage.namespace}.svc:8000",
    }
    assert waiting["PHASE"] == "Waiting"
    assert (waiting["READY"], waiting["GPUS"], waiting["REPLICAS"]) == ("False", "", "0/1")
    assert (waiting["ARCH"], waiting["REASON"]) == ("MyOptForCausalLM", "WaitingForGPUs")
    narrow = columns(stage.kubectl("get", "modeldeployments"))
    assert set(narrow[0]) == {"NAME", "MODEL", "PHASE", "READY", "GPUS", "LAYOUT", "REPLICAS", "AGE"}


def test_kubectl_describe_tells_the_whole_story(stage: Arena) -> None:
    (node,) = stage.nodes(1, gpus=2)
    stage.model("chat", **TWO_PODS)
    stage.wait_ready("chat")
    stage.wait("all events", lambda: len(events(stage, "chat")) >= 3)
    text = " ".join(stage.kubectl("describe", "mdep", "chat").split())
    for words in (
        "1 of 1 replica ready: tp1/pp2 on NVIDIA-A100-80GB-PCIe.",
        f"2 GPUs reserved on {node}.",
        f"1 replica planned with 2 GPUs: tp1/pp2 on {PCIE}.",
        "as parallelism asks",
        "Nothing is in the way.",
    ):
        assert words in text
    assert not re.search(r"\bNone\b|\bnull\b|\b1 (?:replicas|GPUs|pods)\b|\b0 replica\b", text), text


def test_kubectl_wait_does_not_take_the_old_generation_for_the_new(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat")
    stage.kubectl("wait", "mdep/chat", "--for=condition=Ready", "--timeout=60s")
    stage.patch("chat", never_ready(engine=engine("--seed=1")))
    stage.wait(
        "the new generation to be seen",
        lambda: stage.status("chat")["observedGeneration"] == stage.get("chat")["metadata"]["generation"],
    )
    assert stage.condition("chat", "Ready")["status"] == "False"
    command = stage.cluster.kubectl_command(
        "-n", stage.namespace, "wait", "mdep/chat", "--for=condition=Ready", "--timeout=60s"
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as waiting:
        stage.wait("both pods", lambda: sum(is_running(pod) for pod in stage.pods("chat")) == 2)
        assert waiting.poll() is None
        become_ready(stage, *(pod for pod in stage.pods("chat") if not is_ready(pod)))
        output, _ = waiting.communicate(timeout=60)
    assert "condition met" in output
    assert stage.is_ready("chat")


def test_a_life_has_an_event_for_each_turning_point_and_no_other(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.model("chat")
    stage.wait_ready("chat")
    stage.model("waiting")
    stage.wait_reason("waiting", "GPUsReserved", "WaitingForGPUs")
    stage.patch("chat", {"engine": engine("--seed=1")})
    stage.wait("the rollout", lambda: "RolloutComplete" in reasons(stage, "chat"))
    stage.patch("chat", {"suspend": True})
    stage.wait_ready("waiting")
    stage.patch("chat", {"suspend": None})
    stage.wait("its turn to be over", lambda: "Resumed" in reasons(stage, "chat"))
    stage.kubectl("delete", "mdep", "waiting")
    stage.wait_ready("chat")
    stage.wait("the last event", lambda: reasons(stage, "chat")["ReplicasReady"] == 3)
    told = reasons(stage, "chat")
    once = {"RollingOut", "RolloutComplete", "Suspended", "Resumed", "WaitingForGPUs"}
    assert {reason: told[reason] for reason in once} == dict.fromkeys(once, 1)
    # Planned and reserved at the start, after the rollout, and after the pause.
    assert 2 <= told["Planned"] <= 3
    assert 2 <= told["Reserved"] <= 3
    assert set(told) <= once | {"Planned", "Reserved", "ReplicasReady"}, told
    assert reasons(stage, "waiting") == Counter(["WaitingForGPUs", "Planned", "Reserved", "ReplicasReady"])
    for event in events(stage, "chat"):
        assert event["type"] == ("Warning" if event["reason"] == "WaitingForGPUs" else "Normal"), event
        assert event["involvedObject"]["uid"] == stage.get("chat")["metadata"]["uid"]
    table = stage.kubectl("events", "--for", "modeldeployment/chat")
    assert "RolloutComplete" in table


def test_kstatus_and_people_never_read_two_things_at_once(stage: Arena) -> None:
    """Every status that is written, from creation to suspension, keeps the rules of kstatus."""
    stage.nodes(1, gpus=2)
    with recorded(stage) as versions:
        stage.model("chat", **TWO_PODS)
        stage.wait_ready("chat")
        stage.patch("chat", {"engine": engine("--seed=1")})
        stage.wait_ready("chat")
        stage.patch("chat", {"parallelism": {"tensor": 3, "gpusPerPod": None}})
        stage.wait_reason("chat", "Stalled", "LayoutRefused")
        stage.patch("chat", {"suspend": True, "parallelism": {"tensor": None}})
        stage.wait_reason("chat", "Ready", "Suspended")
    assert len(versions) >= 4
    for status in versions:
        said = {each["type"]: each for each in status["conditions"]}
        assert len(said) == 8
        assert {each["observedGeneration"] for each in said.values()} == {status["observedGeneration"]}
        true = {name for name, each in said.items() if each["status"] == "True"}
        assert not {"Reconciling", "Stalled"} <= true
        assert not {"Ready", "Stalled"} <= true
        assert status["phase"] == "Ready" or "Ready" not in true
        for each in said.values():
            assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", each["reason"])
            assert each["message"].endswith("."), each
            assert "None" not in each["message"], each


@contextmanager
def recorded(arena: Arena) -> Iterator[list[Json]]:
    """Every status that was written of the arena's models in between."""
    versions: list[Json] = []
    path = MDEP.format(arena.namespace)
    start = arena.api.get(path)["metadata"]["resourceVersion"]
    yield versions
    # The API server still has the history: a watch from the start ends at its timeout.
    query = f"?watch=1&resourceVersion={start}&timeoutSeconds=1"
    raw = arena.kubectl("get", "--raw", path + query)
    for line in raw.splitlines():
        status = json.loads(line)["object"].get("status") or {}
        if "conditions" in status:
            versions.append(status)


def reasons(arena: Arena, model: str) -> Counter[str]:
    return Counter(event["reason"] for event in events(arena, model))


def is_running(pod: Json) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def is_ready(pod: Json) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", [])
    )
