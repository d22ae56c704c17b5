"""Every accepted field changes what is rendered or what is planned, or is listed here with the reason why
not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from bowsprit.api.v1alpha1 import ModelDeployment, ModelDeploymentSpec
from bowsprit.render.budgets import progress_seconds
from bowsprit.render.revision import OUTSIDE, revision_of
from bowsprit.render.wishes import revision_history_limit, rolls_back, wish_of
from bowsprit.render.workload import workload
from tests.unit.render.examples import FACTS, FIVE_PODS, ONE_POD, OWNER

NOT_RENDERED = {
    "preflight": "whether the pods are proven first; they are the same",
    "model.config.configMapRef.name": "the facts are read from there, and count as facts",
}

IMAGE_PLUGIN = {"plugins": [{"image": "registry.example.com/a:1"}]}
PIP_PLUGIN = {"plugins": [{"requirement": "a==1"}]}
VERIFY = {"rollout": {"verify": {"prompt": "a"}}}
S3 = {"model": {"uri": "s3://models/llama"}}

# Field -> (what stands before, if anything has to, what the field is set to).
SET: dict[str, tuple[dict[str, Any], Any]] = {
    "model.uri": ({}, "pvc://models/llama"),
    "model.revision": ({}, "v2"),
    "model.name": ({}, "other"),
    "model.tokenSecretRef.name": (
        {"model": {"uri": "hf://a/b", "tokenSecretRef": {"name": "n", "key": "k"}}},
        "other",
    ),
    "model.tokenSecretRef.key": (
        {"model": {"uri": "hf://a/b", "tokenSecretRef": {"name": "n", "key": "k"}}},
        "other",
    ),
    "model.config.configMapRef.name": ({"model": {"uri": "hf://a/b"}}, "config"),
    "architecture.override": ({}, "MyOpt"),
    "architecture.unevenTensorParallel": ({}, True),
    "architecture.hfOverrides": ({}, {"a": 1}),
    "plugins[].image": (IMAGE_PLUGIN, "registry.example.com/a:2"),
    "plugins[].path": (IMAGE_PLUGIN, "/wheels"),
    "plugins[].requirement": (PIP_PLUGIN, "a==2"),
    "plugins[].indexURL": (PIP_PLUGIN, "https://packages.example.com"),
    "plugins[].hashes": (PIP_PLUGIN, [f"sha256:{'0' * 64}"]),
    "plugins[].entryPoints": (PIP_PLUGIN, ["a"]),
    "preflight": ({}, "Skip"),
    "engine.image": ({}, "registry.example.com/vllm:1"),
    "engine.args": ({}, ["--enforce-eager"]),
    "engine.env": ({}, [{"name": "A", "value": "b"}]),
    "engine.resources": ({}, {"requests": {"cpu": 4}}),
    "engine.sharedMemory": ({}, "20Gi"),
    "accelerator.resource": ({}, "amd.com/gpu"),
    "accelerator.products": ({}, ["NVIDIA-A100-80GB-PCIe"]),
    "accelerator.nodeSelector": ({}, {"pool": "gpu"}),
    "accelerator.tolerations": ({}, [{"key": "a", "operator": "Exists"}]),
    "capacity.maxModelLen": ({}, 4096),
    "capacity.concurrency": ({}, 3),
    "capacity.gpuMemoryUtilization": ({}, 0.8),
    "capacity.kvCacheDtype": ({}, "fp8"),
    "capacity.cpuOffload": ({}, "4Gi"),
    "capacity.objective": ({}, "MinimizeLatency"),
    "parallelism.tensor": ({}, 2),
    "parallelism.pipeline": ({}, 3),
    "parallelism.expert": ({}, True),
    "parallelism.gpusPerPod": ({}, 2),
    "parallelism.layerPartition": ({}, [40, 40]),
    "replicas": ({}, 3),
    "priority": ({}, 10),
    "rollout.mode": ({}, "Recreate"),
    "rollout.revisionHistoryLimit": ({}, 3),
    "rollout.progressDeadlineSeconds": ({}, 60),
    "rollout.rollbackOnFailure": ({}, False),
    "rollout.verify.prompt": (VERIFY, "other"),
    "rollout.verify.contains": (VERIFY, "Paris"),
    "rollout.verify.maxTokens": (VERIFY, 7),
    "rollout.verify.path": (VERIFY, "/v1/chat/completions"),
    "template": ({}, {"spec": {"priorityClassName": "high"}}),
    "suspend": ({}, True),
}


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for field in model.model_fields.values():
        name = f"{prefix}{field.alias}"
        inner, repeated = model_in(field.annotation)
        if inner is None:
            yield name
        else:
            yield from leaves(inner, f"{name}{'[]' if repeated else ''}.")


def model_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return model_in(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return next((found for each in get_args(annotation) if (found := model_in(each))[0]), (None, False))
    if origin is list:
        return model_in(get_args(annotation)[0])[0], True
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return (annotation if is_model else None), False


def with_field(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    if not rest:
        return {**spec, name: value}
    if head.endswith("[]"):
        return {**spec, name: [with_field(spec[name][0], rest, value)]}
    return {**spec, name: with_field(spec.get(name, {}), rest, value)}


def deployment(spec: dict[str, Any]) -> ModelDeployment:
    return ModelDeployment.model_validate(
        {
            "apiVersion": "bowsprit.dev/v1alpha1",
            "kind": "ModelDeployment",
            "metadata": {"name": OWNER.name, "namespace": OWNER.namespace},
            "spec": spec,
        }
    )


def effect(spec: dict[str, Any]) -> tuple[Any, ...]:
    """What follows from a spec. The revision's hash is held still, for every field would change that."""
    read = deployment(spec)
    what = replace(revision_of(read.spec, FACTS, OWNER.name, {}), hash="0000000000")
    workloads = [workload(OWNER, what, layout, 1) for layout in (ONE_POD, FIVE_PODS)]
    judging = progress_seconds(read.spec, what.weight_bytes), rolls_back(read.spec)
    return workloads, wish_of(read, FACTS), revision_history_limit(read.spec), judging


def before_and_after(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    before, value = SET[path]
    base = {"model": {"uri": "hf://meta-llama/Llama-3.1-70B"}, **before}
    return base, with_field(base, path, value)


def test_every_field_of_the_api_is_set_here() -> None:
    assert set(SET) == set(leaves(ModelDeploymentSpec))


@pytest.mark.parametrize("path", sorted(SET.keys() - NOT_RENDERED.keys()))
def test_changes_what_is_rendered_or_planned(path: str) -> None:
    before, after = before_and_after(path)
    assert effect(before) != effect(after)


@pytest.mark.parametrize("path", sorted(NOT_RENDERED))
def test_changes_nothing_and_says_why(path: str) -> None:
    before, after = before_and_after(path)
    assert effect(before) == effect(after)


@pytest.mark.parametrize("path", sorted(SET))
def test_makes_a_new_revision_unless_it_is_outside(path: str) -> None:
    before, after = (
        revision_of(deployment(each).spec, FACTS, OWNER.name, {}).hash for each in before_and_after(path)
    )
    outside = any(path == field or path.startswith(f"{field}.") for field in OUTSIDE)
    assert (before == after) is outside
