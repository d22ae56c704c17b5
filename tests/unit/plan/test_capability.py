"""GPU types that cannot run a checkpoint are no option, by name and reason; what nobody knows is allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bowsprit.plan.fleet import Fleet
from bowsprit.plan.planner import plan
from bowsprit.plan.wish import Demand
from tests.unit.plan.examples import LLAMA_8B, PCIE, node, wish

SMALL = Demand(4096)
V100, A100, H100, B200 = 70, 80, 90, 100

CASES = {
    "awq needs Turing": ("awq", SMALL, V100, False),
    "awq on Ampere": ("awq", SMALL, A100, True),
    "fp8 needs Turing": ("fp8", SMALL, V100, False),
    "fp8 runs on Ampere by other kernels": ("fp8", SMALL, A100, True),
    "compressed-tensors on Volta": ("compressed-tensors", SMALL, V100, True),
    "mxfp4 needs Ampere": ("mxfp4", SMALL, 75, False),
    "nvfp4 on Ampere by other kernels": ("NVFP4", SMALL, A100, True),
    "fp_quant needs Blackwell": ("fp_quant", SMALL, H100, False),
    "fp_quant on Blackwell": ("fp_quant", SMALL, B200, True),
    "a method that is not known": ("new", SMALL, V100, True),
    "no quantization": (None, SMALL, V100, True),
    "a type that nobody knows": ("awq", SMALL, None, True),
    "bfloat16 by the model falls back": (None, SMALL, V100, True),
    "bfloat16 by the user does not": (None, replace(SMALL, dtype="bfloat16"), V100, False),
    "bfloat16 by the user on Ampere": (None, replace(SMALL, dtype="bfloat16"), A100, True),
}


@pytest.mark.parametrize(("method", "demand", "capability", "runs"), CASES.values(), ids=CASES)
def test_a_type_runs_a_checkpoint(method, demand, capability, runs):
    facts = replace(LLAMA_8B, quantization=method, digest=f"by-{method}")
    answer = plan([wish("m", facts, demand=demand)], Fleet((node("a", capability=capability),))).models[0]
    assert answer.placed is runs
    if not runs:
        assert (answer.refusal.reason, answer.refusal.waits) == ("NoMatchingNodes", True)
        assert f"A100-80GB-PCIe has {capability // 10}.{capability % 10}" in answer.refusal.message


def test_another_type_is_taken_and_the_old_one_is_named_when_that_is_too_small():
    old = node("old", product="Tesla-V100-PCIE-16GB", capability=70)
    facts = replace(LLAMA_8B, quantization="awq", digest="awq")
    on = Fleet((old, node("new", product=PCIE, capability=80)))
    answer = plan([wish("m", facts, demand=SMALL)], on).models[0]
    assert [pod.node for replica in answer.replicas for pod in replica.pods] == ["new"]
    answer = plan([wish("m", facts, demand=Demand(131072, concurrency=10_000))], on).models[0]
    assert answer.refusal.reason == "ModelDoesNotFit"
    assert "on Tesla-V100-PCIE-16GB (80.0 GiB): vLLM runs awq checkpoints from" in answer.refusal.message


def test_nodes_of_another_architecture_are_left_out_with_the_reason():
    arm, intel = node("arm", architecture="arm64"), node("intel")
    answer = plan([_for("amd64")], Fleet((arm, intel))).models[0]
    assert [pod.node for replica in answer.replicas for pod in replica.pods] == ["intel"]
    refusal = plan([_for("amd64", "s390x")], Fleet((arm,))).models[0].refusal
    assert (refusal.reason, refusal.waits) == ("NoMatchingNodes", True)
    assert "1 node: arm64, and the images are for amd64, s390x" in refusal.message
    assert plan([_for()], Fleet((arm,))).models[0].placed


def _for(*architectures: str):
    one = wish("m", LLAMA_8B, demand=SMALL)
    return replace(one, accelerator=replace(one.accelerator, architectures=architectures))
