from __future__ import annotations

from typing import Any

import pytest

from bowsprit.api.scheduling import Objective, RolloutMode
from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.plan.fleet import Toleration
from bowsprit.plan.key import ModelKey
from bowsprit.plan.wish import Accelerator, Demand, ExplicitLayout, Wish
from bowsprit.render.quantities import canonical_bytes, parse_bytes
from bowsprit.render.wishes import accelerator_of, demand_of, explicit_of, hf_overrides_of, wish_of
from tests.unit.render.examples import FACTS, spec

OWN_TAINT = Toleration(key="nvidia.com/gpu", operator="Exists")


def wish(**fields: Any) -> Wish:
    deployment = ModelDeployment.model_validate(
        {
            "apiVersion": "bowsprit.dev/v1alpha1",
            "kind": "ModelDeployment",
            "metadata": {
                "name": "llama",
                "namespace": "chat",
                "creationTimestamp": "2026-11-30T12:00:00Z",
            },
            "spec": {"model": {"uri": "hf://a/b"}, **fields},
        }
    )
    return wish_of(deployment, FACTS)


def test_a_bare_spec_wishes_for_one_replica_with_the_defaults() -> None:
    assert wish() == Wish(
        key=ModelKey("chat", "llama"),
        created="2026-11-30T12:00:00Z",
        replicas=1,
        facts=FACTS,
        demand=Demand(),
        explicit=ExplicitLayout(),
        objective=Objective.MINIMIZE_GPUS,
        accelerator=Accelerator(tolerations=(OWN_TAINT,)),
        priority=0,
        rollout=RolloutMode.AUTO,
    )


@pytest.mark.parametrize(
    ("fields", "replicas"),
    [
        ({"replicas": 0}, 0),
        ({"replicas": 3}, 3),
        ({"replicas": 3, "suspend": True}, 0),
        ({"suspend": False}, 1),
    ],
    ids=["none", "three", "three, suspended", "not suspended"],
)
def test_replicas_wanted(fields: dict[str, Any], replicas: int) -> None:
    assert wish(**fields).replicas == replicas


def test_demand_takes_every_field_of_capacity() -> None:
    asked = spec(
        capacity={
            "maxModelLen": 4096,
            "concurrency": 3,
            "gpuMemoryUtilization": 0.5,
            "kvCacheDtype": "fp8",
            "cpuOffload": "1536Mi",
        },
        parallelism={"expert": True},
        engine={"args": ["--max-num-seqs=64", "--max_num_batched_tokens", "8K", "--enforce-eager"]},
    )
    assert demand_of(asked) == Demand(4096, 3, 0.5, 1, 1.5, 8192, 64, eager=True, expert_parallel=True)


BATCHES: dict[str, tuple[list[str], tuple[int, int]]] = {
    "neither is given": ([], (2048, 256)),
    "many sequences raise the tokens": (["--max-num-seqs=4096"], (4096, 4096)),
    "few tokens lower the sequences": (["--max-num-batched-tokens", "128"], (128, 128)),
    "many tokens leave the sequences": (["--max-num-batched-tokens=8K"], (8192, 256)),
    "both are the user's": (["--max-num-batched-tokens=512", "--max-num-seqs=512"], (512, 512)),
    "a whole prompt fits": (["--no-enable-chunked-prefill"], (32768, 256)),
    "a prompt in chunks": (["--enable-chunked-prefill"], (2048, 256)),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batched_tokens_are_never_fewer_than_sequences_as_vllm_asks(case: str) -> None:
    args, (tokens, sequences) = BATCHES[case]
    demand = demand_of(spec(engine={"args": args}, capacity={"maxModelLen": 32768}))
    assert (demand.max_batched_tokens, demand.max_sequences) == (tokens, sequences)


@pytest.mark.parametrize(
    ("variable", "allowed"),
    [({"value": "1"}, True), ({"value": "True"}, True), ({"value": "0"}, False), ({}, False)],
    ids=["1", "true", "0", "no value"],
)
def test_a_context_beyond_the_models_is_the_users_word_to_vllm(
    variable: dict[str, str], allowed: bool
) -> None:
    asked = spec(engine={"env": [{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", **variable}]})
    assert demand_of(asked).beyond_max_model_len is allowed


def test_explicit_layout() -> None:
    asked = spec(parallelism={"tensor": 2, "pipeline": 2, "gpusPerPod": 4, "layerPartition": [41, 39]})
    assert explicit_of(asked) == ExplicitLayout(2, 2, 4, (41, 39))


def test_the_planner_sees_the_nodes_as_the_pods_will() -> None:
    asked = spec(
        accelerator={
            "resource": "amd.com/gpu",
            "products": ["b", "a"],
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "dedicated", "value": "llm", "effect": "NoSchedule"}],
        },
        template={"spec": {"nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}]}},
    )
    assert accelerator_of(asked) == Accelerator(
        resource="amd.com/gpu",
        products=("a", "b"),
        node_selector=(("pool", "gpu"), ("zone", "a")),
        tolerations=(
            Toleration(key="amd.com/gpu", operator="Exists"),
            Toleration(key="dedicated", value="llm", effect="NoSchedule"),
            Toleration(operator="Exists"),
        ),
    )


def test_the_override_wins_over_the_architectures_of_hf_overrides() -> None:
    asked = spec(architecture={"override": "Mine", "hfOverrides": {"architectures": ["Theirs"], "a": 1}})
    assert hf_overrides_of(asked) == {"architectures": ["Mine"], "a": 1}


@pytest.mark.parametrize(
    ("text", "number", "canonical"),
    [
        ("8Gi", 8 * 2**30, "8Gi"),
        ("8192Mi", 8 * 2**30, "8Gi"),
        ("1.5Gi", 3 * 2**29, "1536Mi"),
        ("1G", 10**9, "1000000000"),
        ("1024G", 1024 * 10**9, "1000000000Ki"),
        ("512", 512, "512"),
        ("0", 0, "0"),
        ("-1Gi", None, "-1Gi"),
        ("8GiB", None, "8GiB"),
        ("١Gi", None, "١Gi"),
        ("", None, ""),
    ],
)
def test_quantities(text: str, number: int | None, canonical: str) -> None:
    assert parse_bytes(text) == number
    assert canonical_bytes(text) == canonical


def test_a_taint_that_is_tolerated_for_a_while_only_is_not_planned_on() -> None:
    passing = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    lasting = {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}
    planned = accelerator_of(spec(template={"spec": {"tolerations": [passing, lasting]}}))
    assert [toleration.key for toleration in planned.tolerations] == ["nvidia.com/gpu", "dedicated"]
