"""The cluster under test, and the namespace that the tests share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import background
from e2e.cluster.real.node import import_images
from e2e.cluster.waiting import wait_until
from e2e.images.store import ensure_image
from e2e.local import cluster
from e2e.local.cluster import LocalCluster, directory, empty_directory
from e2e.local.materials import ensure_materials
from e2e.local.release import Release
from e2e.tests.small_plugins import SmallPlugins
from e2e.tests.stage import CLAIM, CLIENT, PROMPT, Stage, model_writer
from e2e.tests.target import Target
from e2e.tests.targets import OWN, local_target, own_target


@pytest.fixture(scope="session")
def local_cluster() -> Iterator[LocalCluster]:
    """A cluster on this machine that goes with the tests: for those that do something to its nodes."""
    if OWN or background.is_kept(directory()):
        pytest.skip("does things to nodes that are only done to a cluster that goes with the tests")
    with LocalCluster(ensure_materials(), empty_directory()) as found:
        yield found


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Target:
    """The cluster under test: the user's own, one that `python -m e2e.local up` left, or a passing one."""
    if OWN:
        return own_target(Path(OWN))
    if not background.is_kept(directory()):
        request.getfixturevalue("local_cluster")
    return local_target(ensure_materials())


@pytest.fixture(scope="session")
def release(target: Target) -> Release:
    """The operator's release, in a cluster on this machine."""
    if OWN:
        pytest.skip("does things to the operator that are only done to a cluster of these tests")
    return cluster.release(ensure_materials())


@pytest.fixture(scope="session")
def stage(target: Target) -> Iterator[Stage]:
    """A namespace with the tiny models in a claim, and a client."""
    name = f"bowsprit-e2e-{uuid.uuid4().hex[:6]}"
    target.kubectl("create", "namespace", name)
    found = Stage(target, name)
    wait_until("the service account", lambda: bool(found.get("serviceaccounts")["items"]), 60)
    found.apply(*target.claim(name, CLAIM), *model_writer(target.engine))
    found.run(CLIENT, "sleep", "infinity")
    found.wait_for("pod/model-writer", "jsonpath={.status.phase}=Succeeded", 180)
    found.wait_for(f"pod/{CLIENT}", "condition=Ready", 180)
    yield found
    target.kubectl("delete", "namespace", name, "--wait=false")


def tidied(stage: Stage) -> Iterator[None]:
    """What fails leaves its models, and their GPUs would be missed by all tests to come."""
    before = stage.models()
    yield
    for name in stage.models() - before:
        stage.remove(name, 400)


@pytest.fixture(autouse=True, scope="module")
def tidy_module(stage: Stage) -> Iterator[None]:
    yield from tidied(stage)


@pytest.fixture(autouse=True)
def tidy_test(stage: Stage) -> Iterator[None]:
    yield from tidied(stage)


@pytest.fixture(scope="session")
def small_plugins(target: Target) -> str:
    """The image of e2e/tests/small_plugins.py, which the nodes have."""
    if target.small_plugins:
        return target.small_plugins
    if OWN:
        pytest.skip("needs the image of small plugins")
    image = ensure_image(SmallPlugins())
    import_images(directory(), [image])
    return image.reference


@pytest.fixture(scope="session")
def said_by_one_pod(stage: Stage) -> str:
    """What the tiny Llama says to PROMPT with vLLM's own class in one pod, whose GPU is free again."""
    stage.model("one-pod")
    stage.wait_ready("one-pod", 600)
    assert stage.ask(f"{stage.url('one-pod')}/v1/models")[1]["data"][0]["id"] == "one-pod"
    said = stage.complete("one-pod", PROMPT)
    stage.remove("one-pod")
    return said
