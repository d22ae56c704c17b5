"""Every default of the API, in one place.

The schema has none, so that GitOps tools see no drift. A value here is what an absent field reads as, to the planner
and to the pods alike; the resolved values are stored with each revision, so that a change here never rolls a pod.
"""

from __future__ import annotations

ENGINE_IMAGE = "vllm/vllm-openai:v0.32.0"
RUNTIME_IMAGE = "bowsprit/runtime:v0.1.0"
"""Bowsprit's own code in engine pods; `--runtime-image` names another one, such as a mirror's."""
SHARED_MEMORY = "10Gi"
PLUGIN_PATH = "/plugins"

PREFLIGHT = "Required"
PREFLIGHT_REQUESTS = {"cpu": "500m", "memory": "2Gi"}
"""What its pod asks of a node."""
PREFLIGHT_SECONDS = 600
"""From the start of the engine image's Python to the verdict; most of it imports."""

ACCELERATOR_RESOURCE = "nvidia.com/gpu"

CONCURRENCY = 1
"""Requests of maxModelLen tokens."""
GPU_MEMORY_UTILIZATION = 0.92
KV_CACHE_DTYPE = "auto"
OBJECTIVE = "MinimizeGPUs"

REPLICAS = 1
PRIORITY = 0
ROLLOUT_MODE = "Auto"
REVISION_HISTORY_LIMIT = 10
ROLLBACK_ON_FAILURE = True
VERIFY_MAX_TOKENS = 64
VERIFY_PATH = "/v1/completions"

BY_FIELD: dict[str, str | int | float] = {
    "accelerator.resource": ACCELERATOR_RESOURCE,
    "capacity.concurrency": CONCURRENCY,
    "capacity.gpuMemoryUtilization": GPU_MEMORY_UTILIZATION,
    "capacity.kvCacheDtype": KV_CACHE_DTYPE,
    "capacity.objective": OBJECTIVE,
    "engine.image": ENGINE_IMAGE,
    "engine.sharedMemory": SHARED_MEMORY,
    "plugins[].path": PLUGIN_PATH,
    "preflight": PREFLIGHT,
    "priority": PRIORITY,
    "replicas": REPLICAS,
    "rollout.mode": ROLLOUT_MODE,
    "rollout.revisionHistoryLimit": REVISION_HISTORY_LIMIT,
    "rollout.rollbackOnFailure": ROLLBACK_ON_FAILURE,
    "rollout.verify.maxTokens": VERIFY_MAX_TOKENS,
    "rollout.verify.path": VERIFY_PATH,
}
"""By path within spec, for the reference page."""
