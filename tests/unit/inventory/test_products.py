"""Memory and links of a GPU: from labels, from the user's table, from the type's name; never a guess."""

from __future__ import annotations

from typing import Any

import pytest

from bowsprit.inventory.left_out import Why
from bowsprit.inventory.nodes import node_facts
from bowsprit.inventory.products import Card, ProductTable
from tests.unit.inventory.objects import node


def card(raw: dict[str, Any], table: ProductTable | None = None) -> Card:
    return (table or ProductTable()).card(node_facts(raw))


def cloud(labels: dict[str, Any], resource: str = "nvidia.com/gpu") -> dict[str, Any]:
    """A node without the vendor's labels."""
    return node(product=None, memory=None, labels=labels, resource=resource)


def karpenter(name: str, mib: str) -> dict[str, Any]:
    prefix = "karpenter.k8s.aws/instance-gpu-"
    return cloud({f"{prefix}name": name, f"{prefix}memory": mib, f"{prefix}count": "8"})


KNOWN: dict[str, tuple[dict[str, Any], tuple[str, int, bool]]] = {
    "an SXM board whose label has no SXM in it": (node(), ("NVIDIA-H100-80GB-HBM3", 81559, True)),
    "H20 is an HGX board": (node(product="NVIDIA-H20", memory="97871"), ("NVIDIA-H20", 97871, True)),
    "NVL is a PCIe card": (
        node(product="NVIDIA-H100-NVL", memory="95830"),
        ("NVIDIA-H100-NVL", 95830, False),
    ),
    "PCIe": (node(product="NVIDIA-A100-80GB-PCIe", memory="81920"), ("NVIDIA-A100-80GB-PCIe", 81920, False)),
    "a driver that writes no NVIDIA-": (
        node(product="A100-SXM4-40GB", memory="40536"),
        ("A100-SXM4-40GB", 40536, True),
    ),
    "an SXM board that is not in the table": (
        node(product="NVIDIA-A100-SXM-64GB", memory="65252"),
        ("NVIDIA-A100-SXM-64GB", 65252, True),
    ),
    "what the driver reports wins over the table": (
        node(product="Tesla-T4", memory="16384"),
        ("Tesla-T4", 16384, False),
    ),
    "Karpenter's H100 is above what the card has": (karpenter("h100", "81920"), ("h100", 81559, True)),
    "Karpenter's H200 is above what the card has": (karpenter("h200", "144384"), ("h200", 143771, True)),
    "Karpenter's L40S is below what the card has": (karpenter("l40s", "45776"), ("l40s", 45776, False)),
    "Karpenter's A100 without a table keeps a margin": (karpenter("a100", "81920"), ("a100", 81100, True)),
    "CoreWeave's vram is neither GB nor GiB": (
        cloud({"gpu.nvidia.com/model": "H100_NVLINK_80GB", "gpu.nvidia.com/vram": "81"}),
        ("H100_NVLINK_80GB", 81559, True),
    ),
    "CoreWeave's vram of an unknown model is read at its least": (
        cloud({"gpu.nvidia.com/model": "X900", "gpu.nvidia.com/vram": "143"}),
        ("X900", 143000, False),
    ),
    "480 GB is the CPU's memory": (
        cloud({"gpu.nvidia.com/model": "GH200_480GB"}),
        ("GH200_480GB", 97871, False),
    ),
    "an empty label says nothing": (
        cloud({"nvidia.com/gpu.product": "", "nvidia.com/gpu.memory": "", "gpu.nvidia.com/model": "H200"}),
        ("H200", 143771, True),
    ),
    "GKE names the type only": (
        cloud({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}),
        ("nvidia-h100-80gb", 81559, True),
    ),
    "AMD's vram is rounded to GiB": (
        cloud(
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}, "amd.com/gpu"
        ),
        ("AMD_Instinct_MI300X_OAM", 196096, True),
    ),
    "a virtual function is of the same type by its PCI id": (
        cloud({"amd.com/gpu.device-id": "74b5", "amd.com/gpu.vram": "191G"}, "amd.com/gpu"),
        ("AMD_Instinct_MI300X_OAM", 195072, True),
    ),
    "MI325 without the X and without vram": (
        cloud({"amd.com/gpu.product-name": "AMD_Instinct_MI325_OAM"}, "amd.com/gpu"),
        ("AMD_Instinct_MI325_OAM", 262128, True),
    ),
    "the instance type is the last resort": (
        cloud({"node.kubernetes.io/instance-type": "p5.48xlarge"}),
        ("NVIDIA-H100-80GB-HBM3", 81559, True),
    ),
    "the instance type says which V100": (
        node(
            gpus=1,
            product=None,
            memory=None,
            labels={
                "karpenter.azure.com/sku-gpu-name": "V100",
                "node.kubernetes.io/instance-type": "Standard_NC6s_v3",
            },
        ),
        ("V100", 16144, False),
    ),
}


@pytest.mark.parametrize(("raw", "expected"), KNOWN.values(), ids=KNOWN)
def test_known(raw: dict[str, Any], expected: tuple[str, int, bool]) -> None:
    found = card(raw)
    assert found.reason is None
    assert (found.product, found.memory_mib, found.linked) == expected


@pytest.mark.parametrize("memory", ["141GB", "141", "0", "-5", "81559.5", "", "9" * 12, "none", "٣٢٠٠٠"])
def test_a_memory_label_that_is_no_number_of_mib_is_not_used(memory: str) -> None:
    found = card(node(product="H200-SXM5", memory=memory))
    assert (found.memory_mib, found.linked, found.reason) == (143771, True, None)
    unknown = card(node(product="NVIDIA-X1", memory=memory))
    assert unknown.memory_mib == 0
    assert unknown.reason is not None
    assert unknown.reason.why is Why.MEMORY_UNKNOWN


def test_the_label_that_cannot_be_read_is_named_with_what_is_used_instead() -> None:
    note = card(node(product="H200-SXM5", memory="141GB")).note
    assert note is not None
    assert "nvidia.com/gpu.memory=141GB" in note.message
    assert "143771 MiB" in note.message


def test_memory_that_nobody_knows_names_the_table_to_declare_it_in() -> None:
    found = card(node("spark", gpus=1, product="NVIDIA-GB10", memory=None))
    assert found.reason is not None
    assert (found.reason.why, found.reason.gpus) == (Why.MEMORY_UNKNOWN, 1)
    assert "NVIDIA-GB10" in found.reason.message
    assert "declare memoryMiB for nodeSelector kubernetes.io/hostname=spark" in found.reason.message
    assert "products table" in found.reason.message


def test_a_type_that_the_engine_does_not_run_on_is_left_out() -> None:
    prefix = "karpenter.k8s.aws/instance-gpu-"
    labels = {f"{prefix}name": "radeon-pro-v520", f"{prefix}memory": "8192"}
    found = card(cloud(labels, "amd.com/gpu"))
    assert found.reason is not None
    assert found.reason.why is Why.UNSUPPORTED


def test_the_declared_table_gives_what_labels_lack() -> None:
    table = ProductTable.of(
        [{"nodeSelector": {"pool": "a"}, "product": "MY-GPU", "memoryMiB": 40000, "linked": True}]
    )
    bare = card(cloud({"pool": "a"}), table)
    assert (bare.product, bare.memory_mib, bare.linked, bare.reason) == ("MY-GPU", 40000, True, None)
    labelled = card(node(product="NVIDIA-L40S", memory="46068", labels={"pool": "a"}), table)
    assert (labelled.product, labelled.memory_mib, labelled.linked) == ("NVIDIA-L40S", 46068, True)
    elsewhere = card(cloud({"pool": "b"}), table)
    assert elsewhere.reason is not None


def test_a_declared_value_wins_over_what_is_only_known_by_name() -> None:
    entry = {"nodeSelector": {"pool": "a"}, "memoryMiB": 60000, "linked": False}
    found = card(node(memory=None, labels={"pool": "a"}), ProductTable.of([entry]))
    assert (found.memory_mib, found.linked) == (60000, False)


def test_a_declared_product_is_enough_when_its_type_is_known() -> None:
    table = ProductTable.of([{"nodeSelector": {"pool": "a"}, "product": "NVIDIA-H200"}])
    found = card(cloud({"pool": "a"}), table)
    assert (found.memory_mib, found.linked) == (143771, True)


BAD_ENTRIES: dict[str, tuple[object, str]] = {
    "not a map": ("H100", r"products\[0\] must be a map"),
    "an unknown field": ({"nodeSelector": {"a": "b"}, "memory": 1}, "unknown field memory"),
    "no selector": ({"product": "X"}, r"products\[0\].nodeSelector must name"),
    "an empty selector": ({"nodeSelector": {}}, "nodeSelector must name"),
    "a selector value that is no text": ({"nodeSelector": {"a": 1}}, "nodeSelector"),
    "an empty product": ({"nodeSelector": {"a": "b"}, "product": ""}, "product must be"),
    "memory with a unit": ({"nodeSelector": {"a": "b"}, "memoryMiB": "141GB"}, "'141GB'"),
    "memory in GiB": ({"nodeSelector": {"a": "b"}, "memoryMiB": 80}, "1024 or more, not 80"),
    "memory true": ({"nodeSelector": {"a": "b"}, "memoryMiB": True}, "memoryMiB"),
    "linked as text": ({"nodeSelector": {"a": "b"}, "linked": "yes"}, "linked must be true or false"),
}


@pytest.mark.parametrize(("entry", "words"), BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_a_bad_entry_is_refused_by_name(entry: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ProductTable.of([entry])


@pytest.mark.parametrize(
    ("product", "labels", "capability"),
    [
        ("Tesla-V100-PCIE-16GB", {}, 70),
        ("Tesla-T4", {}, 75),
        ("NVIDIA-A100-SXM4-80GB", {}, 80),
        ("NVIDIA-A10G", {}, 86),
        ("NVIDIA-L40S", {}, 89),
        ("NVIDIA-H100-80GB-HBM3", {}, 90),
        ("NVIDIA-B200", {}, 100),
        ("NVIDIA-NewCard", {}, None),
        ("NVIDIA-NewCard", {"nvidia.com/gpu.compute.major": "12", "nvidia.com/gpu.compute.minor": "1"}, 121),
        ("NVIDIA-NewCard", {"nvidia.com/gpu.compute.major": "12"}, None),
        ("NVIDIA-NewCard", {"nvidia.com/gpu.compute.major": "x", "nvidia.com/gpu.compute.minor": "1"}, None),
    ],
)
def test_compute_capability_by_label_or_by_name(product, labels, capability) -> None:
    card = ProductTable().card(node_facts(node(product=product, labels=labels)))
    assert card.capability == capability
