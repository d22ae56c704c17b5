"""Architectures that vLLM does not have, by examples/plugin: proven, planned, served by the real vLLM, and
changed while they serve."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.local.cluster import GPUS
from e2e.models import tiny
from e2e.tests.stage import PROMPT, Stage
from e2e.tests.targets import OWN
from e2e.tests.watch import Watch

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugin"
STEPS = ("PluginVerified", "Planned", "GPUsReserved", "Ready")
BA = " ba"
"""A word of the tiny models' vocabulary, as " ahoy" is."""
DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$")
READY_SECONDS = 600


def apply_example(stage: Stage, name: str, image: str, **spec: Any) -> None:
    """examples/plugin/NAME.yaml with the images and the processors of this cluster, and `spec` besides."""
    config_map, model = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    model["spec"]["plugins"][0]["image"] = image
    args = model["spec"].pop("engine", {}).get("args", ())
    here = {"accelerator": {"resource": stage.target.resource}, "engine": stage.engine(*args)}
    stage.apply(config_map, {**model, "spec": {**model["spec"], **here, **spec}})


def steps_taken(seen: list[dict[str, Any]]) -> list[list[str]]:
    """Which of STEPS were done, each time that something had changed of it."""
    taken: list[list[str]] = []
    for model in seen:
        conditions = model.get("status", {}).get("conditions", ())
        done = {each["type"] for each in conditions if each["status"] == "True"}
        now = [step for step in STEPS if step in done]
        if taken[-1:] != [now]:
            taken.append(now)
    return taken


@pytest.fixture(scope="module")
def watched(stage: Stage) -> Iterator[list[list[str]]]:
    """my-opt.yaml, Ready; what was seen of its steps."""
    with Watch(stage, "mdep", "--field-selector=metadata.name=my-opt") as watch:
        apply_example(stage, "my-opt", stage.target.my_opt)
        stage.wait_ready("my-opt", READY_SECONDS)
        taken = steps_taken(watch.seen())
    yield taken
    stage.remove("my-opt")


@pytest.fixture
def my_opt(watched: list[list[str]]) -> str:
    return "my-opt"


@pytest.fixture
def three_gpus(stage: Stage) -> Iterator[str]:
    """A node with 3 free GPUs; on this machine one that says for a while that it had them."""
    resource = stage.target.resource
    nodes = stage.target.get("nodes")["items"]
    enough = [node for node in nodes if int(node["status"]["allocatable"].get(resource, 0)) >= 3]
    if enough:
        yield str(enough[0]["metadata"]["name"])
    elif OWN:
        pytest.skip("needs a node with 3 GPUs")
    else:
        name = str(nodes[-1]["metadata"]["name"])
        declare_gpus(stage, name, GPUS + 3)  # the models of other tests may hold its own
        yield name
        declare_gpus(stage, name, GPUS)


def declare_gpus(stage: Stage, node: str, count: int) -> None:
    """As RealCluster.declare_gpus, of a node that has said what its GPUs are."""
    labels = {"metadata": {"labels": {"nvidia.com/gpu.count": str(count)}}}
    resources = {stage.target.resource: str(count)}
    status = {"status": {"capacity": resources, "allocatable": resources}}
    stage.target.kubectl("patch", "node", node, "--patch", json.dumps(labels))
    stage.target.kubectl("patch", "node", node, "--subresource=status", "--patch", json.dumps(status))


def test_the_steps_are_seen_in_their_order(watched: list[list[str]]) -> None:
    assert [list(STEPS[: len(taken)]) for taken in watched] == watched
    assert watched[0] == []
    assert watched[-1] == list(STEPS)
    assert len(watched) > 2, "they do not come all at once"


def test_only_the_plugins_architecture_says_this(stage: Stage, my_opt: str) -> None:
    assert stage.complete(my_opt, PROMPT, tokens=4) == 4 * tiny.AHOY


def test_pods_run_the_images_that_preflight_ran_by_digest(stage: Stage, my_opt: str) -> None:
    (report,) = stage.get("configmaps", f"--selector=bowsprit.dev/preflight,bowsprit.dev/model={my_opt}")[
        "items"
    ]
    proven = json.loads(report["data"]["images.json"])
    (engine,) = stage.engines(my_opt)
    for container in [*engine["spec"]["initContainers"], *engine["spec"]["containers"]]:
        pinned = DIGEST.search(container["image"])
        assert pinned, f"{container['name']} runs {container['image']}"
        assert proven[container["name"]].endswith(pinned[1]), container["name"]


def test_a_broken_spec_leaves_what_serves_and_the_cured_one_rolls_out(stage: Stage, my_opt: str) -> None:
    before = stage.lives(my_opt)
    image = stage.target.my_opt
    stage.patch(my_opt, {"plugins": [{"image": image, "entryPoints": ["my_op"]}]})
    stage.wait(
        "the fault to be told",
        lambda: stage.condition(my_opt, "PluginVerified")["reason"] == "EntryPointMissing",
        300,
    )
    assert "did you mean my_opt?" in stage.condition(my_opt, "Ready")["message"]
    assert stage.condition(my_opt, "Available")["status"] == "True"
    assert stage.lives(my_opt) == before
    assert stage.complete(my_opt, PROMPT, tokens=4) == 4 * tiny.AHOY

    stage.patch(
        my_opt,
        {
            "plugins": [{"image": image, "entryPoints": ["my_opt"]}],
            "architecture": {"hfOverrides": {"my_opt_token_id": tiny.VOCABULARY["Ġba"]}},
        },
    )
    body = {"model": my_opt, "prompt": PROMPT, "max_tokens": 4, "temperature": 0}

    def says() -> str:
        status, answer = stage.ask(f"{stage.url(my_opt)}/v1/completions", body)
        return str(answer["choices"][0]["text"]) if status == 200 else ""

    stage.wait("the new revision to answer", lambda: says() == 4 * BA, READY_SECONDS)
    stage.wait_ready(my_opt)
    assert not stage.lives(my_opt).keys() & before.keys()


def test_a_model_on_cpus_serves_and_takes_no_gpu(stage: Stage) -> None:
    """The other packaging of the plugin, by examples/plugin/my-opt-7438.yaml."""
    name = "my-opt-7438"
    apply_example(stage, name, stage.target.my_opt, accelerator={"resource": "cpu"})
    stage.wait_ready(name, READY_SECONDS)
    assert stage.complete(name, PROMPT, tokens=4) == 4 * tiny.AHOY
    assert stage.condition(name, "PluginVerified")["reason"] == "Verified"
    assert "needs no GPU" in stage.condition(name, "GPUsReserved")["message"]
    (engine,) = stage.engines(name)
    limits = engine["spec"]["containers"][0]["resources"]["limits"]
    assert not any("gpu" in resource for resource in limits), limits
    stage.remove(name)


def test_three_gpus_for_four_heads_say_what_one_says(
    stage: Stage, three_gpus: str, said_by_one_pod: str
) -> None:
    """The planner comes to tp=3 by itself when a pod has 3 GPUs and no stages; vLLM's own class could not."""
    if not stage.target.uneven_llama:
        pytest.skip("needs the image of images/plugin-example/uneven-llama")
    name = "uneven-llama"
    layout = {"pipeline": 1, "gpusPerPod": 3}
    apply_example(stage, name, stage.target.uneven_llama, parallelism=layout)
    stage.wait_ready(name, READY_SECONDS)
    assert stage.get("mdep", name)["status"]["layout"] == "tp3/pp1"
    (engine,) = stage.engines(name)
    assert engine["spec"]["nodeName"] == three_gpus
    assert stage.complete(name, PROMPT) == said_by_one_pod
    stage.remove(name)
