"""Slices, shares and partitions are never taken for whole GPUs, and the reason names what was seen."""

from __future__ import annotations

from typing import Any

import pytest

from bowsprit.inventory.left_out import Why
from bowsprit.inventory.nodes import node_facts
from tests.unit.inventory.objects import node

NOT_WHOLE: dict[str, tuple[dict[str, Any], Why, str, int]] = {
    "MIG single shows slices under the plain resource": (
        node(gpus=7, product="NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", memory="9728"),
        Why.MIG,
        "nvidia.com/gpu.product=NVIDIA-A100-80GB-PCIe-MIG-1g.10gb",
        0,
    ),
    "MIG mixed leaves no whole GPU though the labels describe the board": (
        node(gpus=0, labels={"nvidia.com/gpu.count": "2"}, others={"nvidia.com/mig-1g.5gb": "4"}),
        Why.MIG,
        "nvidia.com/mig-1g.5gb: 4",
        2,
    ),
    "a MIG layout that does not fit its strategy": (
        node(gpus=0, product="NVIDIA-A30-MIG-INVALID", memory="0"),
        Why.MIG,
        "MIG-INVALID",
        0,
    ),
    "GKE cuts GPUs without any label of the vendor": (
        node(product=None, memory=None, labels={"cloud.google.com/gke-gpu-partition-size": "1g.5gb"}),
        Why.MIG,
        "cloud.google.com/gke-gpu-partition-size=1g.5gb",
        0,
    ),
    "the MIG manager has cut the GPUs before the labels follow": (
        node(labels={"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "success"}),
        Why.MIG,
        "nvidia.com/mig.config=all-1g.10gb",
        0,
    ),
    "time-slicing with the suffix": (
        node(gpus=6, product="NVIDIA-L4-SHARED", labels={"nvidia.com/gpu.count": "1"}),
        Why.SHARED,
        "NVIDIA-L4-SHARED",
        1,
    ),
    "time-slicing without the suffix": (
        node(gpus=6, product="NVIDIA-L4", labels={"nvidia.com/gpu.replicas": "6"}),
        Why.SHARED,
        "nvidia.com/gpu.replicas=6",
        6,
    ),
    "MPS": (
        node(labels={"nvidia.com/gpu.sharing-strategy": "mps"}),
        Why.SHARED,
        "nvidia.com/gpu.sharing-strategy=mps",
        8,
    ),
    "shares under a renamed resource": (
        node(gpus=0, product=None, memory=None, others={"nvidia.com/gpu.shared": "128"}),
        Why.SHARED,
        "nvidia.com/gpu.shared: 128",
        0,
    ),
    "GKE time-sharing": (
        node(labels={"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}),
        Why.SHARED,
        "gke-gpu-sharing-strategy=time-sharing",
        8,
    ),
    "HAMi": (
        node(gpus=80, annotations={"hami.io/node-nvidia-register": "…"}),
        Why.SHARED,
        "hami.io/node-nvidia-register",
        80,
    ),
    "a virtual GPU": (node(gpus=1, product="NVIDIA-A10-4Q"), Why.SHARED, "NVIDIA-A10-4Q", 1),
    "more units than the instance type has GPUs": (
        node(gpus=4, product=None, memory=None, labels={"node.kubernetes.io/instance-type": "p5.4xlarge"}),
        Why.SHARED,
        "node.kubernetes.io/instance-type=p5.4xlarge has 1",
        0,
    ),
    "AMD compute partitions": (
        node(
            resource="amd.com/gpu",
            product=None,
            memory=None,
            labels={"amd.com/gpu.compute-memory-partition": "dpx_nps1", "amd.com/gpu.vram": "96G"},
        ),
        Why.PARTITIONED,
        "amd.com/gpu.compute-memory-partition=dpx_nps1",
        0,
    ),
    "AMD compute partitions in the other spelling": (
        node(resource="amd.com/gpu", product=None, labels={"amd.com/compute-memory-partition": "CPX_NPS4"}),
        Why.PARTITIONED,
        "CPX_NPS4",
        0,
    ),
    "a fraction of a GPU": (
        node(
            gpus=None,
            product=None,
            memory=None,
            labels={
                "karpenter.k8s.aws/instance-gpu-name": "l4",
                "karpenter.k8s.aws/instance-gpu-count": "0",
                "karpenter.k8s.aws/instance-gpu-memory": "11444",
            },
        ),
        Why.FRACTIONAL,
        "karpenter.k8s.aws/instance-gpu-count=0",
        0,
    ),
    "several models in one node": (
        node(gpus=3, product="NVIDIA-GeForce-RTX-4090", labels={"nvidia.com/gpu.count": "1"}),
        Why.MIXED_MODELS,
        "counts 1 of NVIDIA-GeForce-RTX-4090, but the node has nvidia.com/gpu: 3",
        3,
    ),
    "several models in one node, some unhealthy": (
        node(gpus=5, capacity=8),
        Why.MIXED_MODELS,
        "counts 5 of NVIDIA-H100-80GB-HBM3, but the node has nvidia.com/gpu: 8",
        5,
    ),
    "no device is healthy": (
        node(gpus=0, capacity=16, product=None, memory=None),
        Why.UNHEALTHY,
        "capacity 16, allocatable 0",
        16,
    ),
    "labels outlive devices": (
        node(gpus=None, labels={"nvidia.com/gpu.count": "8"}),
        Why.NO_DEVICES,
        "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3",
        8,
    ),
    "a resource named after the model": (
        node(gpus=None, product=None, memory=None, others={"nvidia.com/a100": "8"}),
        Why.OTHER_RESOURCE,
        "nvidia.com/a100: 8",
        0,
    ),
    "an integrated GPU that is shared ten times": (
        node(
            gpus=None,
            product=None,
            memory=None,
            others={"gpu.intel.com/i915": "10", "gpu.intel.com/monitoring": "1"},
        ),
        Why.OTHER_RESOURCE,
        "gpu.intel.com/i915: 10: left alone",
        0,
    ),
    "a card from before Volta": (
        node(
            gpus=2,
            product="Tesla-P100-PCIE-16GB",
            memory="16384",
            labels={"nvidia.com/gpu.compute.major": "6"},
        ),
        Why.UNSUPPORTED,
        "nvidia.com/gpu.compute.major=6",
        2,
    ),
    "a quantity that is no number": (
        node(gpus="eight"),
        Why.UNREADABLE,
        "nvidia.com/gpu: 'eight'",
        0,
    ),
    "a negative quantity": (node(gpus="-3"), Why.UNREADABLE, "'-3'", 0),
    "a cordoned node": (node(unschedulable=True), Why.CORDONED, "kubectl uncordon n1", 8),
    "a node that is not ready": (node(ready="Unknown"), Why.NOT_READY, "Ready condition is not True", 8),
    "a Windows node": (
        node()
        | {"status": {"allocatable": {"nvidia.com/gpu": "8"}, "nodeInfo": {"operatingSystem": "windows"}}},
        Why.WINDOWS,
        "kubernetes.io/os=windows",
        8,
    ),
}


@pytest.mark.parametrize(("raw", "why", "words", "gpus"), NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_left_out(raw: dict[str, Any], why: Why, words: str, gpus: int) -> None:
    view = node_facts(raw)
    assert view.reasons[0].why is why
    assert words in view.reasons[0].message
    assert view.reasons[0].gpus == gpus


WHOLE: dict[str, tuple[dict[str, Any], int]] = {
    "eight of one model": (node(), 8),
    "mig.capable and mig.strategy are settings, not partitions": (
        node(
            labels={
                "nvidia.com/mig.capable": "true",
                "nvidia.com/mig.strategy": "mixed",
                "nvidia.com/mig.config": "all-disabled",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/gpu.sharing-strategy": "none",
            }
        ),
        8,
    ),
    "a MIG layout that failed leaves whole GPUs": (
        node(labels={"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "failed"}),
        8,
    ),
    "profiles once used stay as resources with 0": (node(others={"nvidia.com/mig-3g.20gb": "0"}), 8),
    "unhealthy devices are not offered": (node(gpus=5, capacity=8, labels={"nvidia.com/gpu.count": "8"}), 5),
    "a capacity that cannot be read": (node(gpus=8, capacity="x", product=None), 8),
    "empty labels say nothing": (
        node(labels={"nvidia.com/gpu.sharing-strategy": "", "cloud.google.com/gke-gpu-partition-size": ""}),
        8,
    ),
    "network devices beside the GPUs": (
        node(others={"nvidia.com/hostdev": "4", "vpc.amazonaws.com/efa": "32"}),
        8,
    ),
    "AMD in one partition": (
        node(
            resource="amd.com/gpu", product=None, labels={"amd.com/gpu.compute-memory-partition": "spx_nps1"}
        ),
        8,
    ),
    "numbers and booleans without quotes": (
        node(labels={"nvidia.com/gpu.count": 8, "nvidia.com/gpu.replicas": 1}),
        8,
    ),
    "an inventory without conditions": (
        node() | {"status": {"capacity": {"nvidia.com/gpu": 4}}, "spec": None},
        4,
    ),
}


@pytest.mark.parametrize(("raw", "whole"), WHOLE.values(), ids=WHOLE)
def test_used(raw: dict[str, Any], whole: int) -> None:
    view = node_facts(raw)
    assert view.reasons == ()
    assert view.whole == whole


def test_with_mig_mixed_the_gpus_that_stay_whole_are_used_and_the_slices_are_reported() -> None:
    view = node_facts(
        node(gpus=4, labels={"nvidia.com/gpu.count": "8"}, others={"nvidia.com/mig-1g.10gb": "28"}),
    )
    assert (view.reasons, view.whole) == ((), 4)
    [part] = view.partly
    assert (part.why, part.gpus) == (Why.MIG, 4)
    assert "nvidia.com/mig-1g.10gb: 28" in part.message


def test_unhealthy_gpus_are_reported_beside_the_ones_that_are_used() -> None:
    view = node_facts(node(gpus=5, capacity=8, labels={"nvidia.com/gpu.count": "8"}))
    [part] = view.partly
    assert (part.why, part.gpus) == (Why.UNHEALTHY, 3)
    assert "3 of 8" in part.message


def test_a_node_without_gpus_says_nothing_even_when_cordoned() -> None:
    view = node_facts(node(gpus=None, product=None, memory=None, unschedulable=True))
    assert (view.resource, view.units, view.reasons) == ("", 0, ())


def test_every_reason_is_given_and_the_kind_of_gpu_comes_first() -> None:
    view = node_facts(node(gpus=6, product="NVIDIA-L4-SHARED", unschedulable=True, ready="False"))
    assert [reason.why for reason in view.reasons] == [Why.SHARED, Why.NOT_READY, Why.CORDONED]


def test_taints_that_keep_pods_off_are_carried_with_an_empty_value_where_there_is_none() -> None:
    view = node_facts(
        node(
            taints=[
                {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
                {"key": "only", "value": "true", "effect": "NoExecute"},
                {"key": "soft", "effect": "PreferNoSchedule"},
            ]
        )
    )
    assert [(taint.key, taint.value, taint.effect) for taint in view.taints] == [
        ("nvidia.com/gpu", "", "NoSchedule"),
        ("only", "true", "NoExecute"),
    ]


def test_the_architecture_comes_from_the_kubelet_else_from_the_label() -> None:
    raw = node(labels={"kubernetes.io/arch": "arm64"})
    assert node_facts(raw).architecture == "amd64"
    raw["status"]["nodeInfo"] = None
    assert node_facts(raw).architecture == "arm64"
