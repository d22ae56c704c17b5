"""Models whose manifests the tests look at, each by what is special about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.facts.model import KvCache, KvKind, Layer
from bowsprit.plan.result import Layout
from bowsprit.render.owner import Owner
from bowsprit.render.revision import Revision, revision_of
from tests.models import transformer

A100 = "NVIDIA-A100-80GB-PCIe"
OWNER = Owner("llama", "chat", "7f3c0a52-8b6e-4d0f-9a51-0c1d2e3f4a5b")

IMAGES = {"runtime": "registry.example.com/runtime:1"}

_LAYER = Layer(1_500_000_000, 200_000_000, 0, 16_384, KvCache(KvKind.FULL, kv_heads=8, values_per_head=256))
_CONFIG = (
    "eNpVkM1uwkAMhN/F5xzYtE0XrpV6gieo0MqJTWN1f9CuA00r3p0F0kOv841nbP8C5mEU5UGnzAU2H7D1GPA95TecCvrtDvYNhETsnc5Hhg34"
    "mwEaGIWIoyvyU1Vr1m0DEpVzYBJUXkBru9dK4hTcMuBx5lyr7OohoypHlRTdyEgVdM8P8MWzO6Gf+A/YBk5pwH6JNq1tX7q6HX67Yypyz+DQ"
    "M5HEz+o3T2Z1K1dhd06Z/sED+sKVpfoAR8tt/cEnVNPB5QpLhmIO"
)
"""Packed, and not packed anew: another zlib packs otherwise."""
FACTS = replace(
    transformer("Llama", layers=80, hidden=8192, inner=28672, heads=64, vocabulary=128256),
    digest="70b",
    users_config="70b",
    layers=(_LAYER,) * 80,
    divisors=(),
    told={"config": _CONFIG, "maxModelLen": 131072},
)

ONE_POD = Layout(A100, tensor=1, pipeline=3, gpus_per_pod=3, layer_partition=(27, 27, 26))
FIVE_PODS = Layout(A100, tensor=1, pipeline=5, gpus_per_pod=1, layer_partition=(16, 16, 16, 16, 16))
TENSOR_4 = Layout("NVIDIA-H100-80GB-HBM3", tensor=4, pipeline=1, gpus_per_pod=4, layer_partition=(80,))
CPUS = Layout("cpu", tensor=1, pipeline=2, gpus_per_pod=1, layer_partition=(40, 40))
ONE_GPU = Layout(A100, tensor=1, pipeline=1, gpus_per_pod=1, layer_partition=(80,))
LAYOUTS = (ONE_POD, FIVE_PODS, TENSOR_4, ONE_GPU)


def spec(**fields: Any) -> ModelDeploymentSpec:
    """A spec on the wire: camelCase fields beside a model that can be replaced."""
    return ModelDeploymentSpec.model_validate({"model": {"uri": "hf://meta-llama/Llama-3.1-70B"}, **fields})


def revision(**fields: Any) -> Revision:
    return revision_of(spec(**fields), FACTS, OWNER.name, IMAGES)


@dataclass(frozen=True)
class Example:
    layout: Layout
    fields: dict[str, Any]


EXAMPLES = {
    "one-pod-pp3": Example(
        ONE_POD,
        {
            "capacity": {"maxModelLen": 16384, "concurrency": 4},
            "engine": {"args": ["--enable-prefix-caching", "--max-num-seqs=64"]},
        },
    ),
    "group-pp5": Example(
        FIVE_PODS,
        {
            "architecture": {"override": "MyLlama", "hfOverrides": {"num_key_value_heads": 16}},
            "capacity": {"kvCacheDtype": "fp8"},
        },
    ),
    "tensor-4": Example(
        TENSOR_4,
        {
            "parallelism": {"expert": True},
            "capacity": {"gpuMemoryUtilization": 0.9, "cpuOffload": "8Gi"},
            "engine": {"args": ["--enforce-eager"], "sharedMemory": "32Gi"},
            "accelerator": {
                "nodeSelector": {"pool": "gpu"},
                "tolerations": [{"key": "dedicated", "value": "llm", "effect": "NoSchedule"}],
            },
        },
    ),
    "plugins": Example(
        ONE_POD,
        {
            "plugins": [
                {"image": "registry.example.com/my-opt:1.2.3", "entryPoints": ["my_opt"]},
                {
                    "requirement": "other-plugin==2.0",
                    "indexURL": "https://packages.example.com/wheels",
                    "hashes": [f"sha256:{'ab' * 32}"],
                    "entryPoints": ["other", "my_opt"],
                },
            ],
            "engine": {"image": "registry.example.com/vllm:0.32"},
        },
    ),
    "cpus": Example(CPUS, {"accelerator": {"resource": "cpu"}}),
    "pvc": Example(ONE_GPU, {"model": {"uri": "pvc://models/llama/8b", "name": "llama-8b"}}),
    "oci": Example(ONE_GPU, {"model": {"uri": "oci://registry.example.com/models/llama:8b"}}),
    "object-storage": Example(
        ONE_GPU,
        {
            "model": {"uri": "s3://models/llama-8b"},
            "engine": {
                "env": [
                    {
                        "name": "AWS_SECRET_ACCESS_KEY",
                        "valueFrom": {"secretKeyRef": {"name": "s3", "key": "key"}},
                    },
                    {"name": "VLLM_NO_USAGE_STATS", "value": "0"},
                ],
                "resources": {"requests": {"cpu": 4, "memory": "64Gi"}, "limits": {"memory": "64Gi"}},
            },
        },
    ),
    "token": Example(
        ONE_GPU,
        {
            "model": {
                "uri": "hf://meta-llama/Llama-3.1-8B",
                "revision": "0e9e39f",
                "tokenSecretRef": {"name": "hf-token", "key": "token"},
            },
            "engine": {"env": [{"name": "VLLM_API_KEY", "value": "unsafe"}]},
        },
    ),
    "verify": Example(
        FIVE_PODS,
        {"rollout": {"mode": "Surge", "verify": {"prompt": "100 $ + 1 $ =", "contains": "101"}}},
    ),
    "template": Example(
        FIVE_PODS,
        {
            "template": {
                "metadata": {"labels": {"team": "chat"}, "annotations": {"example.com/note": "mine"}},
                "spec": {
                    "priorityClassName": "production",
                    "runtimeClassName": "nvidia",
                    "terminationGracePeriodSeconds": 330,
                    "securityContext": {"runAsUser": None, "fsGroup": 2000},
                    "nodeSelector": {"zone": "a"},
                    "tolerations": [{"key": "spot", "operator": "Exists"}],
                    "imagePullSecrets": [{"name": "registry"}],
                    "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "cache"}}],
                    "initContainers": [{"name": "warm", "image": "busybox"}],
                    "containers": [
                        {
                            "name": "engine",
                            "livenessProbe": {"httpGet": {"path": "/ping"}},
                            "readinessProbe": None,
                            "volumeMounts": [{"name": "home", "mountPath": "/home/vllm", "subPath": "llama"}],
                        },
                        {"name": "proxy", "image": "envoy", "ports": [{"containerPort": 9000}]},
                    ],
                },
            }
        },
    ),
}
