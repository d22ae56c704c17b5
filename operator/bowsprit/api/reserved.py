"""What the user cannot say in `engine.args` and `engine.env`, because Bowsprit says it, and where to say it instead.

vLLM's parser is argparse with additions (vllm utils/argparse_utils.py), so one flag has many spellings. All of these
set the tensor-parallel size, and the last one on the command line wins without a word:

    --tensor-parallel-size 4   --tensor-parallel-size=4   --tensor_parallel_size=4   --tensor-par=4   -tp 4   -tp=4   -t 4

and a JSON flag may be given in parts: `--hf-overrides.architectures+ X`. So every beginning of an owned flag is
refused. Where such a beginning is ambiguous, vLLM would refuse it as well; where it is the whole name of a flag
that is not owned, it is let through (a test holds both against vLLM's own list of flags).
"""

from __future__ import annotations

from typing import NamedTuple

from bowsprit.api.base import Rule, quoted, rule
from bowsprit.api.names import HTTP_PORT


class Owned(NamedTuple):
    flags: tuple[str, ...]
    """Every name of vLLM 0.32's for it, `--no-` forms included; `*` at the end stands for anything."""
    cure: str
    """User text: what to do instead."""


OWNED: tuple[Owned, ...] = (
    Owned(("--model",), "set spec.model.uri"),
    Owned(("--revision",), "set spec.model.revision"),
    Owned(("--served-model-name",), "set spec.model.name"),
    Owned(("--hf-overrides",), "set spec.architecture.override or spec.architecture.hfOverrides"),
    Owned(("--tensor-parallel-size", "-tp"), "set spec.parallelism.tensor"),
    Owned(("--pipeline-parallel-size", "-pp"), "set spec.parallelism.pipeline"),
    Owned(("--enable-expert-parallel", "--no-enable-expert-parallel", "-ep"), "set spec.parallelism.expert"),
    Owned(
        ("--data-parallel-*", "--no-data-parallel-*", "-dp*"),
        "data parallelism inside a replica is not supported; set spec.replicas",
    ),
    Owned(
        ("--prefill-context-parallel-size", "-pcp"),
        "it multiplies the GPUs of a replica behind the planner's back; leave it out",
    ),
    Owned(
        ("--nnodes", "-n", "--node-rank", "-r", "--headless", "--master-addr", "--master-port"),
        "the pods of a replica find each other by it; leave it out",
    ),
    Owned(
        ("--distributed-executor-backend", "--device-ids"),
        "it follows from the plan of each replica; leave it out",
    ),
    Owned(
        ("--gpu-memory-utilization", "--device-memory-utilization", "--kv-cache-memory-bytes"),
        "set spec.capacity.gpuMemoryUtilization",
    ),
    Owned(("--max-model-len",), "set spec.capacity.maxModelLen"),
    Owned(("--kv-cache-dtype",), "set spec.capacity.kvCacheDtype"),
    Owned(("--cpu-offload-gb",), "set spec.capacity.cpuOffload"),
    Owned(
        ("--host", "--port", "--uds", "--grpc"),
        f"the Service and the probes rely on HTTP on port {HTTP_PORT}; leave it out",
    ),
    Owned(
        ("--shutdown-timeout",),
        "it follows from spec.template.spec.terminationGracePeriodSeconds; set that",
    ),
    Owned(
        ("--config",),
        "a file could set any flag unseen; write its flags into spec.engine.args",
    ),
)

STREAMER = Owned(
    ("--load-format",),
    "s3://, gs:// and az:// are read through vLLM's own streamer; leave it out",
)
"""Owned only where the weights come from object storage."""

OWNED_ENV: tuple[Owned, ...] = (
    Owned(("VLLM_PP_LAYER_PARTITION",), "set spec.parallelism.layerPartition"),
    Owned(("VLLM_PLUGINS",), "set spec.plugins[].entryPoints"),
    Owned(
        ("VLLM_PORT", "VLLM_HOST_IP"),
        "the ranks of a replica find each other by it, and each pod gets its own; leave it out",
    ),
    Owned(
        (
            "NVIDIA_VISIBLE_DEVICES",
            "CUDA_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
            "ROCR_VISIBLE_DEVICES",
            "GPU_DEVICE_ORDINAL",
        ),
        "the device plugin hands out the GPUs; leave it out",
    ),
)
"""Environment of the engine that Bowsprit or the device plugin sets."""


def pattern(flags: tuple[str, ...]) -> str:
    """RE2 that matches an argument which sets one of `flags`, whatever its spelling."""
    return "|".join(_spellings(flag) for flag in flags)


def flag_rules(owned: tuple[Owned, ...] = OWNED) -> list[Rule]:
    """One rule per cure, on each item of engine.args."""
    return [
        rule(
            f"!self.matches({quoted(pattern(entry.flags))})",
            f"{_names(entry.flags)}: Bowsprit sets this flag (in any spelling): {entry.cure}",
        )
        for entry in owned
    ]


def env_rules() -> list[Rule]:
    """One rule per cure, on each item of engine.env."""
    return [
        rule(
            f"!(self.name in [{', '.join(map(quoted, entry.flags))}])",
            f"{_names(entry.flags)} cannot be set here: {entry.cure}",
            ".name",
        )
        for entry in OWNED_ENV
    ]


def _spellings(flag: str) -> str:
    dashes = "--" if flag.startswith("--") else "-"
    name = flag.removeprefix(dashes).removesuffix("*")
    if len(name) == 1:
        return f"^-{name}"  # argparse takes what follows a one-letter flag for its value: -n4
    head, *tail = ("[-_]" if letter == "-" else letter for letter in name)
    more = ".*" if flag.endswith("*") else ""
    return f"^{dashes}{head}{''.join(f'({letter}' for letter in tail)}{more}{')?' * len(tail)}([.=]|$)"


def _names(flags: tuple[str, ...]) -> str:
    return ", ".join(flag for flag in flags if not flag.startswith("--no-"))
