"""From a spec to the planner's inputs: the one place where absent fields get their meaning for planning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bowsprit.api import defaults
from bowsprit.api.scheduling import Objective, RolloutMode
from bowsprit.api.v1alpha1 import Accelerator as AcceleratorSpec
from bowsprit.api.v1alpha1 import (
    Architecture,
    Capacity,
    KvCacheDtype,
    ModelDeployment,
    ModelDeploymentSpec,
    Parallelism,
    Preflight,
)
from bowsprit.facts.context import ACTIVATION_DTYPES
from bowsprit.facts.model import ModelFacts
from bowsprit.plan.fleet import Toleration
from bowsprit.plan.key import ModelKey
from bowsprit.plan.result import CPU
from bowsprit.plan.wish import Accelerator, Demand, ExplicitLayout, Wish
from bowsprit.render import engine_args
from bowsprit.render.quantities import parse_bytes
from bowsprit.render.uncounted import uncounted

_LONG_CONTEXT = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
"""vLLM takes more than config.json's own limit when it says 1 or true."""

_WHOLE_WINDOWS = ("--disable-hybrid-kv-cache-manager", "--disable-sliding-window")
_STATE_DTYPES = ("--mamba-cache-dtype", "--mamba-ssm-cache-dtype")

_GIB = 2**30
_PLANNED = Demand()
"""What planning reckons with when the user's arguments say nothing."""
_KV_DTYPE_BYTES = {
    KvCacheDtype.AUTO: None,
    KvCacheDtype.BFLOAT16: 2,
    KvCacheDtype.FP8: 1,
    KvCacheDtype.FP8_E4M3: 1,
    KvCacheDtype.FP8_E5M2: 1,
}


def is_required(spec: ModelDeploymentSpec) -> bool:
    """Whether the spec is proven before it is planned."""
    return (spec.preflight or defaults.PREFLIGHT) == Preflight.REQUIRED


def wish_of(deployment: ModelDeployment, facts: ModelFacts | None) -> Wish:
    """What a ModelDeployment wishes for, before anything of it stands; the caller adds the replicas that
    do."""
    spec = deployment.spec
    wanted = defaults.REPLICAS if spec.replicas is None else spec.replicas
    return Wish(
        key=ModelKey(deployment.metadata.namespace, deployment.metadata.name),
        created=deployment.metadata.creation_timestamp,
        replicas=0 if spec.suspend else wanted,
        facts=facts,
        demand=demand_of(spec),
        explicit=explicit_of(spec),
        objective=objective_of(spec),
        accelerator=accelerator_of(spec),
        uncounted=uncounted(args_of(spec)),
        priority=defaults.PRIORITY if spec.priority is None else spec.priority,
        rollout=rollout_of(spec),
    )


def demand_of(spec: ModelDeploymentSpec) -> Demand:
    capacity, parallelism = spec.capacity or Capacity(), spec.parallelism or Parallelism()
    args = args_of(spec)
    tokens = engine_args.integer_of(args, "--max-num-batched-tokens")
    sequences = engine_args.integer_of(args, "--max-num-seqs")
    chunked = engine_args.switch_of(args, "--enable-chunked-prefill") is not False
    least_tokens = max(sequences or 0, 0 if chunked else capacity.max_model_len or 0)
    return Demand(
        max_model_len=capacity.max_model_len,
        concurrency=capacity.concurrency or defaults.CONCURRENCY,
        utilization=capacity.gpu_memory_utilization or defaults.GPU_MEMORY_UTILIZATION,
        kv_dtype_bytes=_KV_DTYPE_BYTES[capacity.kv_cache_dtype or KvCacheDtype.AUTO],
        cpu_offload_gib=cpu_offload_gib(spec),
        # vLLM refuses fewer batched tokens than sequences, and than the longest prompt when that is not cut
        # into chunks (config/scheduler.py).
        max_batched_tokens=tokens or max(_PLANNED.max_batched_tokens, least_tokens),
        max_sequences=sequences or min(_PLANNED.max_sequences, tokens or _PLANNED.max_sequences),
        eager=engine_args.switch_of(args, "--enforce-eager") or False,
        block_tokens=_positive(args, "--block-size", _PLANNED.block_tokens),
        lora_slots=_lora_slots(args),
        lora_rank=_positive(args, "--max-lora-rank", _PLANNED.lora_rank),
        whole_windows=any(engine_args.switch_of(args, flag) for flag in _WHOLE_WINDOWS),
        wide_states=any(engine_args.value_of(args, flag) == "float32" for flag in _STATE_DTYPES),
        dtype=dtype_of(spec),
        expert_parallel=parallelism.expert or False,
        uneven_tensor=bool(spec.architecture and spec.architecture.uneven_tensor_parallel),
        beyond_max_model_len=str(_env_of(spec).get(_LONG_CONTEXT)).lower() in ("1", "true"),
    )


def _lora_slots(args: Sequence[str]) -> int:
    if not engine_args.switch_of(args, "--enable-lora"):
        return 0
    return _positive(args, "--max-loras", 1)


def _positive(args: Sequence[str], flag: str, default: int) -> int:
    """vLLM refuses other numbers itself."""
    number = engine_args.integer_of(args, flag)
    return number if number is not None and number > 0 else default


def dtype_of(spec: ModelDeploymentSpec) -> str | None:
    """What the model is served in when the user's arguments say so, by its one name."""
    return ACTIVATION_DTYPES.get(engine_args.value_of(args_of(spec), "--dtype") or "")


def explicit_of(spec: ModelDeploymentSpec) -> ExplicitLayout:
    parallelism = spec.parallelism or Parallelism()
    partition = parallelism.layer_partition
    return ExplicitLayout(
        tensor=parallelism.tensor,
        pipeline=parallelism.pipeline,
        gpus_per_pod=parallelism.gpus_per_pod,
        layer_partition=tuple(partition) if partition else None,
    )


def accelerator_of(spec: ModelDeploymentSpec) -> Accelerator:
    """Which nodes the pods can run on, exactly as the pods will say it (the template's own words
    included)."""
    accelerator = spec.accelerator or AcceleratorSpec()
    return Accelerator(
        resource=resource_of(spec),
        products=tuple(sorted(set(accelerator.products or ()))),
        node_selector=tuple(sorted(node_selector_of(spec).items())),
        tolerations=lasting(tolerations_of(spec)),
    )


def objective_of(spec: ModelDeploymentSpec) -> Objective:
    capacity = spec.capacity or Capacity()
    return Objective(capacity.objective or defaults.OBJECTIVE)


def rollout_of(spec: ModelDeploymentSpec) -> RolloutMode:
    mode = spec.rollout.mode if spec.rollout else None
    return RolloutMode(mode or defaults.ROLLOUT_MODE)


def revision_history_limit(spec: ModelDeploymentSpec) -> int:
    """Old revisions to keep."""
    limit = spec.rollout.revision_history_limit if spec.rollout else None
    return defaults.REVISION_HISTORY_LIMIT if limit is None else limit


def rolls_back(spec: ModelDeploymentSpec) -> bool:
    """Whether a revision that fails is replaced by the one that served before."""
    wanted = spec.rollout.rollback_on_failure if spec.rollout else None
    return defaults.ROLLBACK_ON_FAILURE if wanted is None else wanted


def hf_overrides_of(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """What is merged into the model's config.json, by vLLM and by whoever reads it for planning."""
    architecture = spec.architecture or Architecture()
    overrides = dict(architecture.hf_overrides or {})
    if architecture.override:
        overrides["architectures"] = [architecture.override]
    return overrides


def args_of(spec: ModelDeploymentSpec) -> list[str]:
    """The user's own engine arguments."""
    return list(spec.engine.args or ()) if spec.engine else []


def _env_of(spec: ModelDeploymentSpec) -> dict[str, Any]:
    """The user's own variables that have a plain value."""
    variables = (spec.engine.env if spec.engine else None) or ()
    return {str(variable.get("name")): variable.get("value") for variable in variables}


def resource_of(spec: ModelDeploymentSpec) -> str:
    """The extended resource that pods ask for."""
    resource = spec.accelerator.resource if spec.accelerator else None
    return str(resource or defaults.ACCELERATOR_RESOURCE)


def cpu_offload_gib(spec: ModelDeploymentSpec) -> float:
    offload = spec.capacity.cpu_offload if spec.capacity else None
    return (parse_bytes(offload) or 0) / _GIB if offload else 0.0


def node_selector_of(spec: ModelDeploymentSpec) -> dict[str, str]:
    own = (spec.accelerator.node_selector if spec.accelerator else None) or {}
    added = template_spec_of(spec).get("nodeSelector")
    return {**own, **(added if isinstance(added, Mapping) else {})}


def tolerations_of(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """core/v1 tolerations of the pods: the one for the resource's own taint, then the user's."""
    own = (spec.accelerator.tolerations if spec.accelerator else None) or []
    added = template_spec_of(spec).get("tolerations")
    device = resource_of(spec)
    every = [
        *([] if device == CPU else [{"key": device, "operator": "Exists"}]),
        *own,
        *(added if isinstance(added, list) else []),
    ]
    return [toleration for index, toleration in enumerate(every) if toleration not in every[:index]]


def template_spec_of(spec: ModelDeploymentSpec) -> Mapping[str, Any]:
    """spec of the user's pod template; empty when there is none."""
    section = (spec.template or {}).get("spec")
    return section if isinstance(section, Mapping) else {}


def lasting(tolerations: Iterable[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    """Without those for some seconds: their taint sends the pod away afterwards, so nothing is planned."""
    return tuple(_toleration(each) for each in tolerations if each.get("tolerationSeconds") is None)


def _toleration(toleration: Mapping[str, Any]) -> Toleration:
    return Toleration(
        key=str(toleration.get("key") or ""),
        operator=str(toleration.get("operator") or "Equal"),
        value=str(toleration.get("value") or ""),
        effect=str(toleration.get("effect") or ""),
    )
