"""Faults of plugins, arguments and models in real containers: each is told with its cure before a serving pod
exists, leaves nothing behind, and is forgotten when the spec is right.

All are tried at the same time, for two processors have enough to do with the imports of vLLM.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.cluster.waiting import Timeout, wait_until
from e2e.tests.small_plugins import ARCHITECTURE, ENTRY_POINT, NO_WHEELS
from e2e.tests.stage import CLAIM, ENGINE, Stage, pod
from e2e.tests.watch import Watch

pytestmark = pytest.mark.e2e

SECRET = "s3cr3t-" * 30
"""Longer than the part of an exception's words that a report has room for."""
VERDICT_SECONDS = 900
"""For all of them together, on a machine that does other things too."""
LOOK_SECONDS = 3

OF_MODEL, OF_PREFLIGHT = "bowsprit.dev/model", "bowsprit.dev/preflight-of"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a spec, and what PluginVerified has to say."""

    reason: str
    says: Sequence[str]
    stays: bool = False
    """It is tried again, or its Job is the only record of it."""
    plugin: str = "good"
    """Folder of the image of small plugins."""
    image: str = ""
    """Instead of that one."""
    entry_point: str = ENTRY_POINT
    override: str = ARCHITECTURE
    model: str = "llama"
    args: Sequence[str] = ()
    memory: str = "4Gi"


FAULTS: dict[str, Fault] = {
    "entry-point-is-not-there": Fault(
        "EntryPointMissing",
        ["has no entry point 'my-plugin'", "did you mean my_plugin?", "Set `plugins[].entryPoints`"],
        entry_point="my-plugin",
    ),
    "module-cannot-be-imported": Fault(
        "PluginImportFailed",
        ["The plugin is at fault", "No module named 'nowhere_to_be_found' (my_plugin/__init__.py:1)"],
        plugin="cannot-be-imported",
    ),
    "function-raises": Fault(
        "PluginRaised", ["RuntimeError: no licence (my_plugin/__init__.py:2)"], plugin="raises"
    ),
    "no-model-class": Fault(
        "NotAModelClass", ["expected a class of torch.nn.Module", "Register the class"], plugin="no-class"
    ),
    "a-method-is-missing": Fault(
        "ModelInterfaceIncomplete",
        ["lacks embed_input_ids(input_ids)", "get_input_embeddings is not called"],
        plugin="no-method",
    ),
    "architecture-is-not-registered": Fault(
        "ArchitectureNotRegistered",
        ["nothing registers MyLama", "did you mean MyLlama", "Set `architecture.override`"],
        override="MyLama",
    ),
    "argument-is-refused": Fault(
        "EngineArgumentRefused",
        ["The spec is at fault", "unrecognized arguments: --no-such-flag=7", "Correct `engine.args`"],
        args=["--no-such-flag=7"],
    ),
    "image-does-not-exist": Fault(
        "ImagePullFailed",
        ["image localhost/bowsprit/nowhere:1 cannot be pulled", "correct the image's name"],
        image="localhost/bowsprit/nowhere:1",
        stays=True,
    ),
    "image-without-wheels": Fault(
        "PluginHasNoWheels", ["holds no *.whl in /no-wheels", "Set `plugins[].path`"], plugin=NO_WHEELS
    ),
    "image-without-the-folder": Fault(
        "PluginHasNoWheels",
        ["nothing could be copied out of plugin image", "/nowhere", "Set `plugins[].path`"],
        plugin="nowhere",
        stays=True,
    ),
    "wheel-for-another-python": Fault(
        "PluginWheelIncompatible",
        ["my_plugin-1.0-cp38-cp38-manylinux_2_17_x86_64.whl", "CPython 3", "Build the wheel for"],
        plugin="for-another-python",
    ),
    "tells-a-secret": Fault(
        "PluginRaised",
        ["again with [value of MY_LOGIN]", "(my_plugin/__init__.py:7)"],
        plugin="tells-a-secret",
    ),
    "tells-a-secret-and-ends-preflight": Fault(
        "PreflightCrashed",
        ["preflight was ended before it had come to a verdict", "tried again"],
        plugin="tells-a-secret-and-ends-preflight",
        stays=True,
    ),
    "writes-into-the-engine": Fault("PluginRaised", ["patched.py"], plugin="writes-into-the-engine"),
    "allocates-without-end": Fault(
        "PluginOutOfMemory",
        ["GiB of the 3.0 GiB that the container may use", "raise `engine.resources.limits.memory`"],
        plugin="allocates-without-end",
        memory="3Gi",
    ),
    "config-of-10-mb": Fault(
        "ModelConfigInvalid", ["The model is at fault", "has 10.0 MB", "Repair the file"], model="huge-config"
    ),
    "config-is-not-utf-8": Fault(
        "ModelConfigInvalid", ["is not UTF-8: byte 16 is 0xff", "Repair the file"], model="no-utf-8"
    ),
    "model-without-weights": Fault(
        "ModelWeightsMissing",
        ["has a config.json and no weights", "Complete the download"],
        model="no-weights",
    ),
}
"""By the name of the ModelDeployment."""

RIGHT = Fault("Verified", [])
CURED = (
    "function-raises",
    "wheel-for-another-python",
    "image-does-not-exist",
    "image-without-the-folder",
    "tells-a-secret-and-ends-preflight",
    "allocates-without-end",
    "config-is-not-utf-8",
)
"""One of each kind: a verdict of preflight and of the installation, what waits, what has given up, what is
tried again, more memory, another model."""

BROKEN_MODELS = """
import json, pathlib, shutil
models = pathlib.Path("/models")
for name in ("huge-config", "no-utf-8", "no-weights"):
    shutil.copytree(models / "llama", models / name, dirs_exist_ok=True)
(models / "huge-config" / "config.json").write_bytes(b" " * 10_000_000)
(models / "no-utf-8" / "config.json").write_bytes(b'{"model_type": "\\xff"}')
(models / "no-weights" / "model.safetensors").unlink()
"""


@dataclass(frozen=True)
class Seen:
    """What came of all faults."""

    models: Mapping[str, dict[str, Any]]
    """As they were when their fault was told and what had run for it was gone; else as they are at last."""
    left: Mapping[str, Sequence[str]]
    """Jobs and pods that were still there at last, by model."""
    pods: Sequence[dict[str, Any]]
    """All that were there at any time, in each of their states."""
    events: str


@pytest.fixture(scope="module")
def told(stage: Stage, small_plugins: str) -> Iterator[Seen]:
    """All faults applied, and told."""
    stage.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "my-login"},
            "stringData": {"login": SECRET},
        }
    )
    write_broken_models(stage)
    with Watch(stage, "pods") as watch:
        stage.apply(*(manifest(stage, name, small_plugins, fault) for name, fault in FAULTS.items()))
        models = told_models(stage)
        yield Seen(
            models,
            preflight_objects(stage, "jobs,pods"),
            watch.seen(),
            stage.kubectl("get", "events", "--output=yaml"),
        )
    stage.kubectl("delete", "mdep", *FAULTS, "--ignore-not-found")


@pytest.fixture(scope="module")
def cured(stage: Stage, small_plugins: str, told: Seen) -> dict[str, dict[str, Any]]:
    """Models with a spec that is right now; without replicas, so that preflight is all that they do."""
    stage.apply(*(manifest(stage, name, small_plugins, RIGHT, replicas=0) for name in CURED))

    def all_proven() -> bool:
        models = {each["metadata"]["name"]: each for each in stage.get("mdep")["items"]}
        return all(is_told(models[name], RIGHT) for name in CURED)

    with contextlib.suppress(Timeout):  # a test of its own says which is not
        wait_until("all to be proven", all_proven, VERDICT_SECONDS, LOOK_SECONDS)
    return {name: stage.condition(name, "PluginVerified") for name in CURED}


def manifest(stage: Stage, name: str, image: str, fault: Fault, **spec: Any) -> dict[str, Any]:
    """A ModelDeployment with this fault."""
    engine = stage.engine(*fault.args)
    login = {"name": "MY_LOGIN", "valueFrom": {"secretKeyRef": {"name": "my-login", "key": "login"}}}
    resources = {**ENGINE, "limits": {**ENGINE["limits"], "memory": fault.memory}}
    plugin = {"image": fault.image or image, "path": f"/{fault.plugin}", "entryPoints": [fault.entry_point]}
    return {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name},
        "spec": {
            "model": {"uri": f"pvc://{CLAIM}/{fault.model}"},
            "architecture": {"override": fault.override},
            "plugins": [plugin],
            "accelerator": {"resource": stage.target.resource},
            "capacity": {"maxModelLen": 512},
            "engine": {**engine, "env": [*engine["env"], login], "resources": resources},
            **spec,
        },
    }


def write_broken_models(stage: Stage) -> None:
    volumes = [{"name": "models", "persistentVolumeClaim": {"claimName": CLAIM}}]
    command = ["python3", "-c", BROKEN_MODELS]
    writer = pod("broken-models", stage.target.engine, command, restartPolicy="Never", volumes=volumes)
    writer["spec"]["containers"][0]["volumeMounts"] = [{"name": "models", "mountPath": "/models"}]
    stage.apply(writer)
    stage.wait_for("pod/broken-models", "jsonpath={.status.phase}=Succeeded", 120)


def told_models(stage: Stage) -> dict[str, dict[str, Any]]:
    """Each model at the moment when its fault is told and nothing of its preflight is left, unless it stays;
    what never comes to that is there as it is at last."""
    told: dict[str, dict[str, Any]] = {}
    now: dict[str, dict[str, Any]] = {}

    def all_told() -> bool:
        now.update({each["metadata"]["name"]: each for each in stage.get("mdep")["items"]})
        left = preflight_objects(stage, "jobs,pods")
        for name, fault in FAULTS.items():
            if is_told(now[name], fault) and (fault.stays or name not in left):
                told.setdefault(name, now[name])
        return told.keys() == FAULTS.keys()

    with contextlib.suppress(Timeout):
        wait_until("all faults to be told", all_told, VERDICT_SECONDS, LOOK_SECONDS)
    return {name: told.get(name, now[name]) for name in FAULTS}


def is_told(model: Mapping[str, Any], fault: Fault) -> bool:
    told = verified(model)
    return told.get("reason") == fault.reason and all(words in told["message"] for words in fault.says)


def verified(model: Mapping[str, Any]) -> dict[str, str]:
    """The condition PluginVerified; empty where it is not there yet."""
    conditions = model.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "PluginVerified"), {})


def preflight_objects(stage: Stage, kinds: str) -> dict[str, list[str]]:
    """What preflight has made and what is still there, by model."""
    found: dict[str, list[str]] = {}
    for each in stage.get(kinds, "--selector=bowsprit.dev/preflight")["items"]:
        marks = each["metadata"]["labels"]
        model = marks.get(OF_MODEL) or marks[OF_PREFLIGHT]
        found.setdefault(model, []).append(f"{each['kind']} {each['metadata']['name']}")
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_cure(name: str, told: Seen) -> None:
    fault = FAULTS[name]
    conditions = {each["type"]: each for each in told.models[name]["status"]["conditions"]}
    told_of = verified(told.models[name])
    assert is_told(told.models[name], fault), told_of
    assert told_of["status"] in ("False", "Unknown")
    assert conditions["Ready"]["status"] != "True"
    assert conditions["Ready"]["reason"] == fault.reason


@pytest.mark.parametrize("name", FAULTS)
def test_no_serving_pod_was_there_at_any_time_and_nothing_is_left_behind(name: str, told: Seen) -> None:
    labels = [each["metadata"].get("labels", {}) for each in told.pods]
    assert any(each.get(OF_PREFLIGHT) == name for each in labels)
    assert not any(each.get(OF_MODEL) == name for each in labels)
    if not FAULTS[name].stays:
        assert name not in told.left


def test_no_secret_is_told(stage: Stage, told: Seen) -> None:
    """Nor a part of it, in any object but the Secret itself."""
    kept = stage.kubectl("get", "configmaps,jobs,controllerrevisions", "--output=yaml")
    everything = [json.dumps([*told.models.values()]), json.dumps(told.pods), told.events, kept]
    assert ["s3cr3t" in text for text in everything] == [False] * len(everything)


@pytest.mark.parametrize("name", CURED)
def test_a_spec_that_is_put_right_is_proven(
    name: str, stage: Stage, cured: dict[str, dict[str, Any]]
) -> None:
    assert (cured[name]["status"], cured[name]["reason"]) == ("True", "Verified"), cured[name]
    assert f"{ARCHITECTURE} is built" in cured[name]["message"]
    stage.wait("its preflight to be gone", lambda: name not in preflight_objects(stage, "jobs,pods"))


def test_with_the_models_goes_all_that_preflight_made(stage: Stage, cured: dict[str, dict[str, Any]]) -> None:
    stage.kubectl("delete", "mdep", *FAULTS)
    made = "jobs,pods,configmaps"
    stage.wait("all to be gone", lambda: not FAULTS.keys() & preflight_objects(stage, made).keys())
