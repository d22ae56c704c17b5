"""What is known of GPU types by name: memory, NVLink or xGMI, and whether the engine runs on them at all.

Labels of the device vendor come first everywhere; this table fills what they leave open. Memory is in MiB
as NVML or ROCm report it, and where drivers or ECC make that vary, the least that was seen: a plan that is
a little cautious starts, one that is a little bold dies after loading for ten minutes. None: the name does
not tell.

From H100 on the label of an SXM board does not say SXM, so NVLink cannot be read off the name; NVL boards
are PCIe cards with a bridge over pairs and count as not linked.
"""

from __future__ import annotations

from typing import NamedTuple


class GpuType(NamedTuple):
    memory_mib: int | None
    linked: bool = False
    """NVLink or xGMI joins all the GPUs of a node."""
    supported: bool = True
    """False: vLLM has no kernels for it."""


# By normalized name: lower case, dashes, no vendor words (see `normalized`).
GPU_TYPES: dict[str, GpuType] = {
    # Blackwell
    "b200": GpuType(183359, linked=True),
    "b300": GpuType(None, linked=True),
    "gb200": GpuType(None, linked=True),
    "gb300": GpuType(None, linked=True),
    "gb10": GpuType(None),  # shares the node's memory: only its owner can say how much of it
    "rtx-pro-6000-blackwell-server-edition": GpuType(97887),
    # Hopper
    "h100-80gb-hbm3": GpuType(81559, linked=True),
    "h100-nvlink-80gb": GpuType(81559, linked=True),
    "h100-pcie": GpuType(81559),
    "h100-nvl": GpuType(95830),
    "h800": GpuType(81559, linked=True),
    "h800-pcie": GpuType(81559),
    "h20": GpuType(97871, linked=True),
    "h20-3e": GpuType(143771, linked=True),
    "h200": GpuType(143771, linked=True),
    "h200-sxm5": GpuType(143771, linked=True),
    "h200-nvl": GpuType(143771),
    "gh200-480gb": GpuType(97871),  # 480 GB is the CPU's memory
    # Ampere
    "a100-sxm4-40gb": GpuType(39538, linked=True),
    "a100-sxm4-80gb": GpuType(81251, linked=True),
    "a100-nvlink-80gb": GpuType(81251, linked=True),
    "a100-pcie-40gb": GpuType(39538),
    "a100-pcie-80gb": GpuType(80994),
    "a100-80gb-pcie": GpuType(80994),
    "a800-sxm4-80gb": GpuType(81251, linked=True),
    "a800-80gb-pcie": GpuType(80994),
    "a30": GpuType(24062),
    "a10": GpuType(22731),
    "a10g": GpuType(22731),
    "a40": GpuType(45634),
    # Ada
    "l4": GpuType(23034),
    "l40": GpuType(46068),
    "l40s": GpuType(46068),
    # Turing and Volta
    "t4": GpuType(15109),
    "t4g": GpuType(15109),
    "v100-sxm2-16gb": GpuType(16144, linked=True),
    "v100-sxm2-32gb": GpuType(32480, linked=True),
    "v100-pcie-16gb": GpuType(16144),
    "v100-pcie-32gb": GpuType(32480),
    # Before Volta: compute capability under 7.0
    "k80": GpuType(None, supported=False),
    "m60": GpuType(None, supported=False),
    "p100": GpuType(None, supported=False),
    "p40": GpuType(None, supported=False),
    "p4": GpuType(None, supported=False),
    # AMD
    "mi210": GpuType(65520),
    "mi250": GpuType(65520, linked=True),
    "mi250x": GpuType(65520, linked=True),
    "mi300x": GpuType(196592, linked=True),
    "mi300x-hf": GpuType(196592, linked=True),
    "mi308x": GpuType(196592, linked=True),
    "mi325": GpuType(262128, linked=True),
    "mi325x": GpuType(262128, linked=True),
    "mi350x": GpuType(294896, linked=True),
    "mi355": GpuType(294896, linked=True),
    "mi355x": GpuType(294896, linked=True),
    "radeon-pro-v520": GpuType(None, supported=False),
    "radeon-pro-v620": GpuType(None, supported=False),
}

# AMD's virtual functions have no product label: PCI device id -> the label that the whole card carries.
# Ids as in vLLM's platforms/rocm.py; AMD writes MI325 and MI355 without the X.
AMD_DEVICE_IDS: dict[str, str] = {
    "740f": "AMD_Instinct_MI210",
    "7408": "AMD_Instinct_MI250X",
    "740c": "AMD_Instinct_MI250X",
    "74a1": "AMD_Instinct_MI300X_OAM",
    "74b5": "AMD_Instinct_MI300X_OAM",
    "74a9": "AMD_Instinct_MI300X_HF",
    "74bd": "AMD_Instinct_MI300X_HF",
    "74a2": "AMD_Instinct_MI308X",
    "74b6": "AMD_Instinct_MI308X",
    "74a5": "AMD_Instinct_MI325_OAM",
    "74b9": "AMD_Instinct_MI325_OAM",
    "75a0": "AMD_Instinct_MI350X",
    "75b0": "AMD_Instinct_MI350X",
    "75a3": "AMD_Instinct_MI355_OAM",
    "75b3": "AMD_Instinct_MI355_OAM",
}

# Short names that mean one board only in one cloud: label -> value -> normalized name.
CLOUD_NAMES: dict[str, dict[str, str]] = {
    "karpenter.k8s.aws/instance-gpu-name": {
        "a100": "a100-sxm4",  # 40 GB (p4d) and 80 GB (p4de): memory by the label beside it
        "h100": "h100-80gb-hbm3",
        "v100": "v100-sxm2",
    },
    "cloud.google.com/gke-accelerator": {
        "nvidia-tesla-v100": "v100-sxm2-16gb",
        "nvidia-tesla-a100": "a100-sxm4-40gb",
        "nvidia-a100-80gb": "a100-sxm4-80gb",
        "nvidia-h100-80gb": "h100-80gb-hbm3",
        "nvidia-h100-mega-80gb": "h100-80gb-hbm3",
        "nvidia-h200-141gb": "h200",
        "nvidia-rtx-pro-6000": "rtx-pro-6000-blackwell-server-edition",
    },
}

_AWS_FAMILIES: dict[str, tuple[str, dict[str, int]]] = {
    "g4dn": (
        "Tesla-T4",
        {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 4, "16xlarge": 1, "metal": 8},
    ),
    "p3": ("Tesla-V100-SXM2-16GB", {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8}),
    "p3dn": ("Tesla-V100-SXM2-32GB", {"24xlarge": 8}),
    "p4d": ("NVIDIA-A100-SXM4-40GB", {"24xlarge": 8}),
    "p4de": ("NVIDIA-A100-SXM4-80GB", {"24xlarge": 8}),
    "p5": ("NVIDIA-H100-80GB-HBM3", {"4xlarge": 1, "48xlarge": 8}),
    "p5e": ("NVIDIA-H200", {"48xlarge": 8}),
    "p5en": ("NVIDIA-H200", {"48xlarge": 8}),
    "p6-b200": ("NVIDIA-B200", {"48xlarge": 8}),
} | {
    family: (
        product,
        {
            "xlarge": 1,
            "2xlarge": 1,
            "4xlarge": 1,
            "8xlarge": 1,
            "12xlarge": 4,
            "16xlarge": 1,
            "24xlarge": 4,
            "48xlarge": 8,
        },
    )
    for family, product in (("g5", "NVIDIA-A10G"), ("g6", "NVIDIA-L4"), ("g6e", "NVIDIA-L40S"))
}

# Instance type -> (product as its label would be, GPUs): the last resort, for nodes whose labels say nothing.
INSTANCE_TYPES: dict[str, tuple[str, int]] = {
    f"{family}.{size}": (product, gpus)
    for family, (product, sizes) in _AWS_FAMILIES.items()
    for size, gpus in sizes.items()
} | {
    "Standard_NC6s_v3": ("Tesla-V100-PCIE-16GB", 1),
    "Standard_NC12s_v3": ("Tesla-V100-PCIE-16GB", 2),
    "Standard_NC24s_v3": ("Tesla-V100-PCIE-16GB", 4),
    "Standard_NC24rs_v3": ("Tesla-V100-PCIE-16GB", 4),
    "Standard_NC4as_T4_v3": ("Tesla-T4", 1),
    "Standard_NC8as_T4_v3": ("Tesla-T4", 1),
    "Standard_NC16as_T4_v3": ("Tesla-T4", 1),
    "Standard_NC64as_T4_v3": ("Tesla-T4", 4),
    "Standard_NC24ads_A100_v4": ("NVIDIA-A100-80GB-PCIe", 1),
    "Standard_NC48ads_A100_v4": ("NVIDIA-A100-80GB-PCIe", 2),
    "Standard_NC96ads_A100_v4": ("NVIDIA-A100-80GB-PCIe", 4),
    "Standard_ND96asr_v4": ("NVIDIA-A100-SXM4-40GB", 8),
    "Standard_ND96amsr_A100_v4": ("NVIDIA-A100-SXM4-80GB", 8),
    "Standard_NC40ads_H100_v5": ("NVIDIA-H100-NVL", 1),
    "Standard_NC80adis_H100_v5": ("NVIDIA-H100-NVL", 2),
    "Standard_ND96isr_H100_v5": ("NVIDIA-H100-80GB-HBM3", 8),
    "Standard_ND96isr_H200_v5": ("NVIDIA-H200", 8),
    "Standard_ND96isr_MI300X_v5": ("AMD_Instinct_MI300X_OAM", 8),
}

# Compute capability times ten, by the first word of the normalized name.
_CAPABILITIES: dict[str, int] = {
    "v100": 70,
    **dict.fromkeys(("t4", "t4g"), 75),
    **dict.fromkeys(("a100", "a800", "a30"), 80),
    **dict.fromkeys(("a10", "a10g", "a40"), 86),
    **dict.fromkeys(("l4", "l40", "l40s"), 89),
    **dict.fromkeys(("h100", "h800", "h20", "h200", "gh200"), 90),
    **dict.fromkeys(("b200", "gb200"), 100),
    **dict.fromkeys(("b300", "gb300"), 103),
    "gb10": 121,
}

_LINK_WORDS = frozenset({"sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "hgx", "nvlink", "oam"})
_VENDOR_WORDS = ("nvidia-", "amd-", "instinct-", "tesla-")
_BOARD_WORDS = ("-oam", "-vf")


def normalized(product: str) -> str:
    """`NVIDIA-H100-80GB-HBM3` -> `h100-80gb-hbm3`; `AMD_Instinct_MI300X_OAM` -> `mi300x`."""
    name = product.lower().replace("_", "-").replace(" ", "-")
    for word in _VENDOR_WORDS:
        name = name.removeprefix(word)
    for word in _BOARD_WORDS:
        name = name.removesuffix(word)
    return name


def compute_capability(product: str) -> int | None:
    """Times ten; None when the name does not tell."""
    return _CAPABILITIES.get(normalized(product).split("-")[0])


def gpu_type(product: str, label: str = "") -> GpuType:
    """What is known of a product; `label` is the node label that named it, since short names differ by cloud.

    Of a name that is not in the table only the form factor can be read: SXM, HGX and OAM boards are linked.
    """
    name = CLOUD_NAMES.get(label, {}).get(product.lower()) or normalized(product)
    known = GPU_TYPES.get(name)
    if known is not None:
        return known
    words = f"{name}-{product.lower().replace('_', '-')}".split("-")
    return GpuType(None, linked=not _LINK_WORDS.isdisjoint(words))
