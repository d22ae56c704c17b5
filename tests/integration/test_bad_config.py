"""Whatever stands in a config or a template ends in words and not in a crash."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.integration.arena import Arena, OperatorProcess
from tests.integration.life import events, fetch, uids
from tests.models import LLAMA_8B

pytestmark = pytest.mark.integration


def without(field: str) -> str:
    return json.dumps({key: value for key, value in LLAMA_8B.items() if key != field})


def having(**fields: Any) -> str:
    return json.dumps({**LLAMA_8B, **fields})


BAD: dict[str, tuple[str, str]] = {
    "empty": ("", "config.json"),
    "not-json": ("{num_hidden_layers: 32", "config.json"),
    "a-list": ("[1, 2, 3]", "config.json"),
    "a-word": ('"llama"', "config.json"),
    "deep": ("[" * 5000 + "]" * 5000, "config.json"),
    "deep-object": ('{"a":' * 5000 + "1" + "}" * 5000, "config.json"),
    "negative": (having(num_hidden_layers=-32), "num_hidden_layers"),
    "zero": (having(num_attention_heads=0), "num_attention_heads"),
    "not-a-number": (json.dumps(LLAMA_8B).replace("4096", "NaN"), "NaN"),
    "infinite": (json.dumps(LLAMA_8B).replace("4096", "Infinity"), "Infinity"),
    "astronomic": (having(num_hidden_layers=10**18), "num_hidden_layers"),
    "huge-digits": (json.dumps(LLAMA_8B).replace("4096", "9" * 5000), ""),
    "a-text": (having(num_hidden_layers="thirty-two"), "num_hidden_layers"),
    "a-nested-list": (having(hidden_size=[4096]), "hidden_size"),
    "architectures-of-numbers": (having(architectures=[1, {}]), "architectures"),
    "lacks-layers": (without("num_hidden_layers"), "num_hidden_layers"),
    "lacks-heads": (without("num_attention_heads"), "num_attention_heads"),
    "lacks-hidden-size": (without("hidden_size"), "hidden_size"),
    "lacks-vocabulary": (without("vocab_size"), "vocab_size"),
}
"""Name of the model -> its config.json, and the field that the condition must name."""


def test_bad_configs_of_every_kind_are_named_and_a_good_model_beside_them_runs(
    stage: Arena, operator: OperatorProcess
) -> None:
    stage.nodes(1, gpus=1)
    for name, (text, _) in BAD.items():
        stage.model(name, config=text or " ")
    stage.model("good")
    stage.wait_ready("good")
    for name, (_, field) in BAD.items():
        stage.wait(f"a verdict on {name}", lambda name=name: bool(stage.condition(name, "Stalled")))  # type: ignore[misc]
        stalled = stage.condition(name, "Stalled")
        assert (stalled["status"], stalled["reason"][:11]) == ("True", "ModelConfig"), (name, stalled)
        assert field in stalled["message"], (name, stalled["message"])
        assert len(stalled["message"]) <= 1024
        assert stage.status(name)["phase"] == "Failed"
    assert fetch(operator, "/healthz")[0] == 200
    # Cured by another config alone.
    good = json.dumps({"data": {"config.json": json.dumps(LLAMA_8B)}})
    stage.kubectl("delete", "mdep", "good")
    stage.kubectl("patch", "configmap", "deep-config", "-p", good)
    stage.wait_ready("deep")


def test_a_config_of_900_kb_is_read(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    text = having(id2label={str(number): f"LABEL_{number}" for number in range(39_000)})
    assert len(text) > 900_000
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "chat-config", "namespace": stage.namespace},
        "data": {"config.json": text},
    }
    stage.kubectl("create", "-f", "-", input=json.dumps(config))
    stage.apply(stage.manifest("chat"))
    stage.wait_ready("chat")


def test_a_model_waits_for_its_config_and_goes_on_by_itself(stage: Arena) -> None:
    stage.nodes(1, gpus=1)
    stage.apply(stage.manifest("chat"))
    ready = stage.wait_reason("chat", "Ready", "ModelConfigMissing")
    assert "kubectl create configmap chat-config --from-file=config.json" in ready["message"]
    # Nothing to change in the spec: not Stalled, so `flux` and `helm --wait` go on waiting.
    assert stage.condition("chat", "Stalled")["status"] == "False"
    stage.wait("an event", lambda: "ModelConfigMissing" in reasons(stage))

    stage.kubectl("create", "configmap", "chat-config", "--from-literal=readme=none")
    stage.wait("the lacking key", lambda: "readme" in stage.condition("chat", "Ready")["message"])
    stage.kubectl("delete", "configmap", "chat-config")
    stage.model("chat")
    stage.wait_ready("chat")


def test_what_runs_keeps_running_when_its_config_becomes_bad_or_goes(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat")
    stage.wait_ready("chat")
    before = uids(stage, "chat")
    bad = json.dumps({"data": {"config.json": "{"}})
    stage.kubectl("patch", "configmap", "chat-config", "-p", bad)
    stage.wait_reason("chat", "Ready", "ModelConfigInvalid")
    assert stage.condition("chat", "Available")["status"] == "True"
    assert stage.status("chat")["url"]
    stage.kubectl("delete", "configmap", "chat-config")
    stage.wait_reason("chat", "Ready", "ModelConfigMissing")
    # Another model is planned meanwhile: the pods of this one keep their GPU.
    stage.model("other")
    stage.wait_ready("other")
    assert uids(stage, "chat") == before
    stage.model("chat")
    stage.wait_ready("chat")
    assert uids(stage, "chat") == before


def test_a_template_that_cannot_be_merged_names_its_field(stage: Arena) -> None:
    stage.nodes(1, gpus=2)
    stage.model("chat")
    stage.wait_ready("chat")
    before = uids(stage, "chat")
    stage.patch("chat", {"template": {"spec": {"hostAliases": [{"hostnames": ["hub"]}]}}})
    stalled = stage.wait_reason("chat", "Stalled", "InvalidSpec")
    assert "spec.template.spec.hostAliases: must be a list of objects, each with ip" in stalled["message"]
    assert uids(stage, "chat") == before
    # What merges and is no pod after all: the API server's words.
    stage.patch("chat", {"template": {"spec": {"hostAliases": None, "dnsPolicy": "Sometimes"}}})
    stalled = stage.wait_reason("chat", "Stalled", "ApplyFailed")
    assert stalled["status"] == "True"
    assert "dnsPolicy" in stalled["message"]
    assert "Deployment/chat-" in stalled["message"]
    assert uids(stage, "chat") == before
    stage.patch("chat", {"template": None})
    stage.wait_ready("chat")
    assert uids(stage, "chat") == before


def reasons(arena: Arena) -> Counter[str]:
    return Counter(event["reason"] for event in events(arena, "chat"))


DEEP = 5000
"""Levels: the API server takes 10,000, Python reads about 1,000."""


def test_a_model_that_is_nested_too_deep_to_be_read_is_told_so_and_stops_no_other(arena: Arena) -> None:
    """Neither when it comes nor when an operator starts that finds it."""
    arena.nodes(1)
    operator = arena.operator()
    arena.model("chat")
    arena.wait_ready("chat")
    deep = arena.manifest("deep", architecture={"hfOverrides": {"deep": "DEEP"}})
    text = json.dumps(deep).replace('"DEEP"', '{"a":' * DEEP + "1" + "}" * DEEP)
    arena.kubectl("create", "-f", "-", input=text)

    def reason() -> str:
        return arena.kubectl("get", "mdep", "deep", "-o", "jsonpath={.status.conditions[0].reason}")

    arena.wait("the deep model to be told", lambda: reason() == "InvalidSpec")
    operator.kill()
    operator.start()
    arena.kubectl("scale", "mdep", "chat", "--replicas=2")
    arena.wait("a second replica", lambda: len(arena.pods("chat")) == 2)
    assert operator.running
    # Nobody else can read a list with it either.
    arena.kubectl("delete", "mdep", "deep")
