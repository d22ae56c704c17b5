"""A model with two replicas of two one-GPU pods, and the moments of its life."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.facts.model import FactsError
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import Layout, ModelPlan, PodPlan, Refusal, ReplicaPlan, Stage
from bowsprit.status.growth import Growth, More
from bowsprit.status.observed import ApplyError, Observed, PodFailure, Unit
from tests.models import transformer

KEY = ModelKey("chat", "llama")
A100 = "NVIDIA-A100-80GB-PCIe"

FACTS = transformer("Llama", layers=80, hidden=8192, inner=28672, heads=64, vocabulary=128256)

LAYOUT = Layout(A100, tensor=1, pipeline=2, gpus_per_pod=1, layer_partition=(40, 40))
STAGE = Stage(layers=40, weights_gib=65.71, kv_gib=2.5, other_gib=3.25, capacity_gib=73.3)


def spec(**changes: Any) -> ModelDeploymentSpec:
    return ModelDeploymentSpec.model_validate(
        {"model": {"uri": "hf://meta-llama/Llama-3.1-70B"}, "replicas": 2, **changes}
    )


def replica(index: int, *nodes: str) -> ReplicaPlan:
    pods = tuple(PodPlan(node, 1) for node in nodes)
    return ReplicaPlan(index, LAYOUT, pods, (STAGE, STAGE), "Fewest GPUs that hold the model.")


FIRST = replica(0, "gpu-1", "gpu-1")
SECOND = replica(1, "gpu-2", "gpu-3")


def unit(plan: ReplicaPlan, **changes: Any) -> Unit:
    return replace(Unit(plan, "new", pods=2, pinned=2, bound=2, ready=2), **changes)


CREATED = Observed(KEY, generation=1, spec=spec(), target="new")
PLANNED = replace(CREATED, facts=FACTS, plan=ModelPlan(KEY, wanted=2, replicas=(FIRST, SECOND)))
READY = replace(PLANNED, units=(unit(FIRST), unit(SECOND)), serving="new")
SHORT = Refusal(
    "InsufficientGPUs",
    "2 GPUs short of NVIDIA-A100-80GB-PCIe: 2 needed, 0 free; chat/dbrx holds 4.",
    gpus_wanted=2,
    gpus_short=2,
    product=A100,
)
OLD = replace(unit(FIRST), revision="old")
REJECTED = PodFailure("UnexpectedAdmissionError", "Allocate failed: no devices left.", binding=True)
OOM = PodFailure(
    "OOMKilled", "pod llama-0-1: container engine reached its memory limit and was killed", ended=True
)
KILLED = PodFailure(
    "Error",
    "pod llama-0-1: container engine was ended by SIGKILL (exit code 137)",
    ended=True,
    times=4,
    pause_seconds=40,
)
UNTRUE = PodFailure(
    "VerifyFailed",
    "pod llama-1-0: container engine: /v1/completions answered without 'Paris': ' is a city in'",
    ended=True,
)
NO_IMAGE = PodFailure("ImagePullBackOff", "pod llama-0-1: container engine cannot start: not found")
ALONE = replace(LAYOUT, pipeline=1, layer_partition=(80,))

LIFE: dict[str, Observed] = {
    "just created": CREATED,
    "a field of the spec is wrong": replace(
        CREATED,
        faults=("engine.args[0]: --tensor-parallel-size belongs to Bowsprit; use parallelism.tensor",),
    ),
    "the config is missing": replace(
        CREATED,
        target=None,
        facts=FactsError(
            "ModelConfigMissing",
            "model.config.configMapRef.name",
            "ConfigMap chat/llama-config is not there. Create it with the key config.json.",
        ),
    ),
    "the config lacks a field": replace(
        CREATED,
        facts=FactsError("ModelConfigFieldMissing", "num_hidden_layers", "not in config.json. Add it."),
    ),
    "it waits for GPUs, third in the queue": replace(
        PLANNED, plan=ModelPlan(KEY, wanted=2, refusal=SHORT, position=3)
    ),
    "one replica is placed and one waits": replace(
        READY,
        units=(unit(FIRST),),
        plan=ModelPlan(KEY, wanted=2, replicas=(FIRST,), refusal=SHORT, position=1),
    ),
    "the layout is refused": replace(
        PLANNED,
        plan=ModelPlan(
            KEY,
            wanted=2,
            refusal=Refusal(
                "LayoutRefused",
                "parallelism.tensor 3 does not divide 64 heads. Use 1, 2, 4 or 8.",
                waits=False,
            ),
        ),
    ),
    "planned, no pod yet": PLANNED,
    "all pods there, half of them placed": replace(
        PLANNED, units=(unit(FIRST, ready=0), unit(SECOND, pinned=0, bound=0, ready=0))
    ),
    "what its pods are to take is not free yet": replace(
        PLANNED, units=(unit(FIRST, ready=0), unit(SECOND, pinned=0, bound=0, ready=0)), held_back=True
    ),
    "placed, engines starting": replace(PLANNED, units=(unit(FIRST, ready=0), unit(SECOND, ready=1))),
    "one replica of two is ready": replace(READY, units=(unit(FIRST), unit(SECOND, ready=1))),
    "ready": READY,
    "an engine runs out of memory": replace(READY, units=(unit(FIRST), unit(SECOND, ready=0, failure=OOM))),
    "a group that goes on dying waits": replace(
        READY, units=(unit(FIRST), unit(SECOND, pinned=0, bound=0, ready=0, failure=KILLED))
    ),
    "a group that has lost a rank is being removed": replace(
        READY, units=(unit(FIRST), unit(SECOND, ready=1, failure=KILLED, leaving=True))
    ),
    "an image of a serving pod is not there": replace(
        READY, units=(unit(FIRST), unit(SECOND, ready=0, failure=NO_IMAGE))
    ),
    "an engine that is a replica of its own dies": replace(
        READY,
        spec=spec(replicas=1),
        units=(unit(replace(FIRST, layout=ALONE), pods=1, pinned=1, bound=1, ready=0, failure=OOM),),
    ),
    "the kubelet rejects a pod": replace(
        PLANNED, units=(unit(FIRST), unit(SECOND, pinned=1, bound=1, ready=0, failure=REJECTED))
    ),
    "a node is lost": replace(READY, units=(unit(FIRST), unit(SECOND, ready=1, lost_nodes=("gpu-3",)))),
    "the group of a lost node is being removed": replace(
        READY, units=(unit(FIRST), unit(SECOND, ready=1, lost_nodes=("gpu-3",), leaving=True))
    ),
    "it stands again while the old group still goes": replace(
        READY,
        units=(unit(FIRST), unit(SECOND), unit(SECOND, ready=0, lost_nodes=("gpu-3",), leaving=True)),
    ),
    "the rejected group is being removed": replace(
        PLANNED,
        units=(
            unit(FIRST),
            unit(SECOND, pinned=1, bound=1, ready=0, failure=REJECTED, leaving=True),
        ),
    ),
    "the rejected group goes and finds no GPUs elsewhere": replace(
        PLANNED,
        plan=ModelPlan(KEY, wanted=2, replicas=(FIRST,), refusal=SHORT, position=1),
        units=(
            unit(FIRST),
            unit(SECOND, pinned=1, bound=1, ready=0, failure=REJECTED, leaving=True),
        ),
    ),
    "without LeaderWorkerSet no layout can be started": replace(
        PLANNED,
        lws_installed=False,
        plan=ModelPlan(
            KEY,
            wanted=2,
            refusal=Refusal(
                "LeaderWorkerSetNotInstalled",
                "A replica takes 2 GPUs in 2 pods, and LeaderWorkerSet is not installed. Install it.",
                gpus_wanted=2,
                waits=False,
            ),
        ),
    ),
    "the spec is broken while it serves": replace(
        READY, spec=None, faults=("spec.replicas: must be a whole number",), target=None
    ),
    "a new revision starts beside the old": replace(
        PLANNED, generation=2, units=(OLD, unit(SECOND, ready=0)), serving="old"
    ),
    "a new revision does not pass its self-check": replace(
        PLANNED,
        generation=2,
        units=(OLD, unit(SECOND, ready=0, failure=UNTRUE)),
        serving="old",
        fallback="old",
    ),
    "the first revision ends again and again": replace(
        PLANNED, units=(unit(FIRST, ready=0, failure=replace(KILLED, times=5, pause_seconds=80)),)
    ),
    "scaled down, one replica stopping": replace(
        READY,
        spec=spec(replicas=1),
        plan=ModelPlan(KEY, wanted=1, replicas=(FIRST,)),
        units=(unit(FIRST), unit(SECOND, leaving=True)),
    ),
    "scaled to nothing": replace(READY, spec=spec(replicas=0), plan=ModelPlan(KEY, wanted=0), units=()),
    "suspended, pods stopping": replace(
        READY,
        spec=spec(suspend=True),
        plan=ModelPlan(KEY, wanted=0),
        units=(unit(FIRST, leaving=True), unit(SECOND, leaving=True)),
    ),
    "suspended": replace(READY, spec=spec(suspend=True), plan=ModelPlan(KEY, wanted=0), units=()),
    "LeaderWorkerSet is not installed": replace(PLANNED, lws_installed=False),
    "the API server refuses the workload": replace(
        PLANNED,
        apply_errors=(
            ApplyError(
                "LeaderWorkerSet/llama-new",
                'Invalid value: "x y": a valid label must consist of alphanumeric characters',
                field="spec.leaderWorkerTemplate.workerTemplate.metadata.labels",
                invalid=True,
            ),
        ),
    ),
    "a quota refuses the workload": replace(
        PLANNED,
        apply_errors=(ApplyError("Deployment/llama-new", "exceeded quota: gpu, limited: requests.cpu=8"),),
    ),
    "a quota refuses the pods": replace(
        PLANNED,
        refused_pods=(ApplyError("Deployment/llama-new", "forbidden: exceeded quota: gpu, limited: pods=8"),),
    ),
    "it is ready, and an old workload may not be deleted": replace(
        READY, apply_errors=(ApplyError("Deployment/llama-old", "the owner team has to agree"),)
    ),
    "it is suspended, and its workload may not be deleted": replace(
        READY,
        spec=spec(suspend=True),
        plan=ModelPlan(KEY, wanted=0),
        apply_errors=(ApplyError("Deployment/llama-new", "the owner team has to agree"),),
    ),
    "its pods ask for more than was rendered": replace(
        CREATED,
        plan=ModelPlan(
            KEY,
            wanted=2,
            refusal=Refusal(
                "InsufficientNodeResources",
                "2 more replicas take 2 GPUs each, which are free, but a pod cannot start on their nodes, "
                "which asks for 102 CPUs besides: node a (4 GPUs free) has 64 of 64 CPUs free.",
            ),
            position=1,
        ),
        growth=Growth("llama-new-5d9c-x", (More("cpu", 102_000, 2000), More("nvidia.com/gpu", 8, 1))),
    ),
    "plugins without preflight": replace(
        READY, spec=spec(plugins=[{"image": "registry.example/plugin:1"}], preflight="Skip")
    ),
}
