"""What users' clusters bring along: strict namespaces, tainted nodes, API keys, pod templates of their own,
and no way out to the internet.

Two models show most of it at once: one in a namespace that refuses what is not restricted and not counted, on
nodes that are all tainted; and one with a template that takes the place of Bowsprit's own volumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from e2e.tests.stage import Stage
from e2e.tests.targets import OWN

pytestmark = pytest.mark.e2e

KEY = "opensesame"
BY_ENVIRONMENT, BY_ARGUMENT = "key-by-environment", "key-by-argument"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "api-key"}, "stringData": {"key": KEY}}
KEY_VARIABLE = {
    "name": "VLLM_API_KEY",
    "valueFrom": {"secretKeyRef": {"name": "api-key", "key": "key"}},
}

DEFAULT_MEMORY = "77Mi"
"""Which no container of Bowsprit's may end up with."""
LIMIT_RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "defaults"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "default": {"cpu": "77m", "memory": DEFAULT_MEMORY},
                "defaultRequest": {"cpu": "7m", "memory": DEFAULT_MEMORY},
            }
        ]
    },
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "all"},
    "spec": {
        "hard": {
            "pods": "20",
            **{f"{kind}.cpu": "50" for kind in ("requests", "limits")},
            **{f"{kind}.memory": "90Gi" for kind in ("requests", "limits")},
        }
    },
}

GPU_TAINT = "nvidia.com/gpu=present:NoSchedule"
STRANGE_TAINT = "example.com/dedicated=others:NoSchedule"

OWN_VOLUMES: dict[str, Any] = {
    "volumes": [
        {"name": "home", "emptyDir": {"sizeLimit": "5Gi"}},
        {"name": "mine", "emptyDir": {"medium": "Memory", "sizeLimit": "333Mi"}},
    ],
    "containers": [{"name": "engine", "volumeMounts": [{"name": "mine", "mountPath": "/dev/shm"}]}],
}
"""/dev/shm by the user's own volume, and a volume of Bowsprit's name."""


@pytest.fixture(scope="module")
def strict(stage: Stage) -> Iterator[Stage]:
    """The namespace from now on refuses pods that are not restricted or do not say what they need, and all
    nodes are tainted as GPU nodes."""
    with ExitStack() as undo:
        undo.enter_context(labelled(stage))
        stage.apply(SECRET, LIMIT_RANGE, QUOTA)
        undo.callback(stage.kubectl, "delete", "limitrange/defaults", "resourcequota/all", "secret/api-key")
        if not OWN:
            undo.enter_context(tainted(stage, GPU_TAINT))
        yield stage


@pytest.fixture(scope="module")
def served(strict: Stage) -> Iterator[Stage]:
    """Both models are Ready."""
    engine = strict.engine()
    strict.model(BY_ENVIRONMENT, engine={**engine, "env": [*engine["env"], KEY_VARIABLE]})
    strict.model(
        BY_ARGUMENT,
        preflight="Skip",
        engine=strict.engine("--api-key", KEY),
        template={"spec": OWN_VOLUMES},
    )
    for name in (BY_ENVIRONMENT, BY_ARGUMENT):
        strict.wait_ready(name, 600)
    yield strict
    for name in (BY_ENVIRONMENT, BY_ARGUMENT):
        strict.remove(name)


@pytest.mark.parametrize("model", [BY_ENVIRONMENT, BY_ARGUMENT])
def test_with_an_api_key_the_model_is_ready_and_measured_and_nobody_else_is_served(
    served: Stage, model: str
) -> None:
    url = served.url(model)
    assert served.complete(model, " ba be bi", key=KEY)
    for path, body in (("/v1/models", None), ("/v1/completions", {"model": model, "prompt": " ba"})):
        assert served.ask(f"{url}{path}", body)[0] == 401
        assert served.ask(f"{url}{path}", body, key="guessed")[0] == 401
    status, metrics = served.ask(f"{url}/metrics")
    assert status == 200
    assert "vllm:" in metrics
    assert list(served.lives(model).values()) == [0]
    assert served.condition(model, "Ready")["status"] == "True"


def test_every_container_says_what_it_needs_in_a_namespace_that_counts(served: Stage) -> None:
    """Those of the preflight pod too: the quota would have refused it, and its verdict is there."""
    assert served.condition(BY_ENVIRONMENT, "PluginVerified")["status"] == "True"
    for model in (BY_ENVIRONMENT, BY_ARGUMENT):
        (pod,) = served.engines(model)
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            for section in ("requests", "limits"):
                assert container["resources"][section].keys() >= {"cpu", "memory"}, container["name"]
                assert container["resources"][section]["memory"] != DEFAULT_MEMORY, container["name"]


def test_a_template_may_bring_shared_memory_and_replace_the_home_folder(served: Stage) -> None:
    (pod,) = served.engines(BY_ARGUMENT)
    size = served.execute(pod["metadata"]["name"], "df", "--block-size=M", "--output=size", "/dev/shm")
    assert size.split()[-1] == "333M"
    (home,) = (volume for volume in pod["spec"]["volumes"] if volume["name"] == "home")
    assert home["emptyDir"] == {"sizeLimit": "5Gi"}


def test_weights_in_a_claim_are_served_without_asking_the_hub(served: Stage) -> None:
    """No pod has a way out, where the cluster is that of these tests."""
    if OWN:
        pytest.skip("the pods of other clusters may have a way out")
    (pod,) = served.engines(BY_ARGUMENT)
    reach = "import socket; socket.create_connection(('huggingface.co', 443), timeout=5)"
    script = f'echo $HF_HUB_OFFLINE; python3 -c "{reach}" 2>/dev/null && echo reached || echo unreached'
    told = served.execute(pod["metadata"]["name"], "sh", "-c", script)
    assert told.split() == ["1", "unreached"]


def test_the_hub_that_cannot_be_reached_is_named_before_a_gpu_is_taken(strict: Stage) -> None:
    strict.model("from-the-hub", model={"uri": "hf://nobody/nothing"})
    strict.wait_for("mdep/from-the-hub", reason("PluginVerified", "HubUnreachable"), 180)
    message = strict.condition("from-the-hub", "PluginVerified")["message"]
    assert "huggingface.co" in message
    assert "pvc://" in message
    assert not strict.engines("from-the-hub")
    strict.remove("from-the-hub")


def test_preflight_without_a_node_says_which_toleration_to_add(stage: Stage) -> None:
    if OWN:
        pytest.skip("taints the nodes of these tests only")
    with tainted(stage, STRANGE_TAINT):
        stage.model("homeless")
        stage.wait_for("mdep/homeless", reason("PluginVerified", "PreflightUnschedulable"), 60)
        message = stage.condition("homeless", "PluginVerified")["message"]
        assert "example.com/dedicated" in message
        assert "spec.accelerator.tolerations" in message
        stage.remove("homeless")


def test_a_volume_that_is_named_like_those_of_bowsprit_is_refused_in_words(stage: Stage) -> None:
    volumes = [{"name": "bowsprit-runtime", "emptyDir": {}}]
    stage.model("taken", template={"spec": {"volumes": volumes}})
    stage.wait_for("mdep/taken", reason("Ready", "InvalidSpec"))
    assert "bowsprit-runtime" in stage.condition("taken", "Ready")["message"]
    stage.remove("taken")


def reason(condition: str, awaited: str) -> str:
    """What `kubectl wait` waits for until a condition has a reason."""
    return f"jsonpath={{.status.conditions[?(@.type=='{condition}')].reason}}={awaited}"


@contextmanager
def labelled(stage: Stage) -> Iterator[None]:
    """The namespace takes restricted pods only."""
    label = "pod-security.kubernetes.io/enforce"
    stage.kubectl("label", "namespace", stage.namespace, f"{label}=restricted", "--overwrite")
    try:
        yield
    finally:
        stage.kubectl("label", "namespace", stage.namespace, f"{label}-")


@contextmanager
def tainted(stage: Stage, taint: str) -> Iterator[None]:
    """All nodes have a taint."""
    stage.kubectl("taint", "nodes", "--all", taint, "--overwrite")
    try:
        yield
    finally:
        stage.kubectl("taint", "nodes", "--all", f"{taint}-")
