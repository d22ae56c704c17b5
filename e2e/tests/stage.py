"""A namespace in the cluster under test, what tests put into it, and how they ask it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bowsprit.cluster import access
from e2e.cluster.control_plane import KubectlFailed
from e2e.cluster.waiting import Timeout, wait_until
from e2e.models import tiny
from e2e.tests.target import Manifest, Target

CLAIM = "models"
CLIENT = "client"
PROMPT = " ba be bi"
"""Words of the tiny models."""
POLL_SECONDS = 1.0
SMALL = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "512Mi"}}
ENGINE = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "6Gi"}}
ENGINE_ENV = (
    {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "1"},  # GiB
    {"name": "VLLM_CPU_OMP_THREADS_BIND", "value": "nobind"},  # engines share the machine's few cores
)

ENGINE_ARGS = (
    *("--dtype", "float32"),  # what random weights say is decided by wide margins only there
    *("--compilation-config", '{"mode": 2, "backend": "eager"}'),
)
"""The model is traced, not compiled: that would take a compiler in the image and a minute at every start.
Without tracing, the workers of vLLM 0.32 die of their first request on CPUs."""

ASK = """
import json, sys, urllib.error, urllib.request
url, body, key = sys.argv[1:]
headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
request = urllib.request.Request(url, body.encode() or None, headers)
try:
    with urllib.request.urlopen(request, timeout=120) as response:
        status, text = response.status, response.read().decode()
except urllib.error.HTTPError as error:
    status, text = error.code, error.read().decode()
except OSError as error:
    status, text = 0, str(error)
print(json.dumps([status, text]))
"""
"""Sends a request from inside the cluster: the name and the address of the Service are part of the test."""


class Stage:
    """What a test acts on."""

    def __init__(self, target: Target, namespace: str) -> None:
        self.target, self.namespace = target, namespace

    # ---- objects ----------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.target.kubectl("--namespace", self.namespace, *arguments, input=input)

    def get(self, *arguments: str) -> dict[str, Any]:
        return self.target.get("--namespace", self.namespace, *arguments)

    def apply(self, *manifests: Manifest) -> None:
        """Applies manifests to the namespace."""
        text = yaml.safe_dump_all([dict(manifest) for manifest in manifests])
        self.kubectl("apply", "--server-side", "--filename=-", input=text)

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Pods that are not on their way out."""
        items = self.get("pods", "--selector", selector)["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    def run(self, name: str, *command: str) -> None:
        """Runs a pod of the engine image."""
        self.apply(pod(name, self.target.engine, command))

    def execute(self, name: str, *command: str) -> str:
        """Runs a command in a pod; returns what it prints."""
        return self.kubectl("exec", name, "--", *command)

    # ---- models -----------------------------------------------------------------------------------

    def model(self, name: str, kind: str = "llama", **spec: Any) -> None:
        """Applies a ModelDeployment of a tiny model (a key of tiny.KINDS).

        Where `preflight` is Skip its config.json comes with it, for there is no report to plan from.
        """
        model: dict[str, Any] = {"uri": f"pvc://{CLAIM}/{kind}"}
        if spec.get("preflight") == "Skip":
            self.apply(config_map(f"{name}-config", {"config.json": json.dumps(tiny.KINDS[kind][0])}))
            model["config"] = {"configMapRef": {"name": f"{name}-config"}}
        defaults: dict[str, Any] = {
            "model": model,
            "accelerator": {"resource": self.target.resource},
            "capacity": {"maxModelLen": 512, "concurrency": 4},
            "engine": self.engine(),
        }
        self.apply(
            {
                "apiVersion": "bowsprit.dev/v1alpha1",
                "kind": "ModelDeployment",
                "metadata": {"name": name},
                "spec": {**defaults, **spec},
            }
        )

    def engine(self, *args: str) -> dict[str, Any]:
        """spec.engine for a small machine without GPUs."""
        return {
            "image": self.target.engine,
            "args": [*ENGINE_ARGS, *args],
            "env": list(ENGINE_ENV),
            "resources": ENGINE,
            "sharedMemory": "1Gi",
        }

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        conditions = (self.get("mdep", name).get("status") or {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == kind), {})

    def engines(self, name: str) -> list[dict[str, Any]]:
        """The pods of a model."""
        return self.pods(f"bowsprit.dev/model={name}")

    def url(self, name: str) -> str:
        """Where a model says that it serves."""
        return str(self.get("mdep", name)["status"]["url"])

    def lives(self, name: str) -> dict[str, int]:
        """The pods of a model by uid, each with the restarts of its containers."""
        return {
            each["metadata"]["uid"]: sum(
                status["restartCount"] for status in each["status"].get("containerStatuses", ())
            )
            for each in self.engines(name)
        }

    def ask(self, url: str, body: Mapping[str, Any] | None = None, key: str = "") -> tuple[int, Any]:
        """Status and content of an answer to a client in the cluster; the status is 0 where there is none.

        key: the API key that the client shows.
        """
        text = json.dumps(body) if body is not None else ""
        status, content = json.loads(self.execute(CLIENT, "python3", "-c", ASK, url, text, key))
        return int(status), json.loads(content) if content.startswith("{") else content

    def complete(self, name: str, prompt: str, tokens: int = 8, key: str = "") -> str:
        """Greedy tokens of a model, through its Service."""
        body = {"model": name, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
        status, answer = self.ask(f"{self.url(name)}/v1/completions", body, key)
        assert status == 200, answer
        return str(answer["choices"][0]["text"])

    def patch(self, name: str, spec: Mapping[str, Any]) -> None:
        """Changes fields of a model's spec; None takes one away."""
        self.kubectl("patch", "mdep", name, "--type=merge", "--patch", json.dumps({"spec": spec}))

    def models(self) -> set[str]:
        """Names of all that are there."""
        return {each["metadata"]["name"] for each in self.get("mdep")["items"]}

    def remove(self, name: str, seconds: float = 180.0) -> None:
        """Deletes a model; returns when its pods, and with them its GPUs, are given back."""
        self.kubectl("delete", "mdep", name, "--ignore-not-found")
        selector = f"--selector=bowsprit.dev/model={name}"
        self.kubectl("wait", "pods", selector, "--for=delete", f"--timeout={seconds:.0f}s")

    # ---- waiting ----------------------------------------------------------------------------------

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits; a failure tells the state of the namespace."""
        try:
            wait_until(what, condition, seconds, POLL_SECONDS)
        except Timeout as late:
            raise AssertionError(f"{late}\n{self.report()}") from late

    def wait_for(self, what: str, condition: str, seconds: float = 60.0) -> None:
        """`kubectl wait`, for a condition such as condition=Ready or jsonpath=…"""
        try:
            for awaited in ("create", condition):  # the second fails at once where there is nothing yet
                self.kubectl("wait", what, f"--for={awaited}", f"--timeout={seconds:.0f}s")
        except KubectlFailed as late:
            raise AssertionError(f"{late}\n{self.report()}") from late

    def wait_ready(self, name: str, seconds: float = 300.0) -> None:
        """Until a model is Ready."""
        self.wait_for(f"mdep/{name}", "condition=Ready", seconds)

    def report(self) -> str:
        """Models, pods, Events and the ends of the logs of the pods and of the operator."""
        parts = [
            self.kubectl("get", "mdep,pods", "--output=wide"),
            self.kubectl("get", "events", "--sort-by=.lastTimestamp")[-6000:],
            self.kubectl("get", "mdep", "--output=yaml")[-6000:],
        ]
        for found in self.get("pods")["items"]:
            name = found["metadata"]["name"]
            parts.append(f"--- {name}\n{self._log(self.namespace, name, '--all-containers')}")
        operator = "--selector=app.kubernetes.io/component=operator"
        parts.append(f"--- the operator\n{self._log(access.NAMESPACE, operator)}")
        return "\n".join(parts)

    def _log(self, namespace: str, *whose: str) -> str:
        try:
            return self.target.kubectl("-n", namespace, "logs", *whose, "--prefix", "--tail=40")
        except KubectlFailed as refused:
            return str(refused)


def pod(name: str, image: str, command: Sequence[str], **spec: Any) -> dict[str, Any]:
    """A pod of one container."""
    container = {"name": "main", "image": image, "command": list(command), "resources": SMALL}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def config_map(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}


def model_writer(image: str) -> list[dict[str, Any]]:
    """A pod that writes the tiny models into the claim, and the program that it runs."""
    source = Path(tiny.__file__).read_text()
    script = "\n".join(f"python3 /program/tiny.py {kind} /models/{kind}" for kind in tiny.KINDS)
    writer = pod(
        "model-writer",
        image,
        ["sh", "-ec", script],
        restartPolicy="Never",
        volumes=[
            {"name": "program", "configMap": {"name": "model-writer"}},
            {"name": "models", "persistentVolumeClaim": {"claimName": CLAIM}},
        ],
    )
    writer["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "program", "mountPath": "/program"},
        {"name": "models", "mountPath": "/models"},
    ]
    return [config_map("model-writer", {"tiny.py": source}), writer]
