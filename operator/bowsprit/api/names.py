"""Names that users meet on the cluster and that several rooms must agree on: label keys, the engine container, the
port. Whoever else spells one of them out would be a second source."""

from __future__ import annotations

MODEL_LABEL = "bowsprit.dev/model"
"""On all that belongs to a model, its pods too: the ModelDeployment's name."""
REVISION_LABEL = "bowsprit.dev/revision"
LAYOUT_LABEL = "bowsprit.dev/layout"
ROLE_LABEL = "bowsprit.dev/role"
"""On pods: HEAD answers requests, WORKER holds further ranks of the replica."""
PREFLIGHT_LABEL = "bowsprit.dev/preflight"
"""On preflight Jobs, their pods and what they reported: hash of what was judged."""
PREFLIGHT_OF_LABEL = "bowsprit.dev/preflight-of"
"""On the pods of a preflight: the ModelDeployment's name. MODEL_LABEL is for pods that serve."""
HEAD = "head"
WORKER = "worker"

ENGINE_CONTAINER = "engine"
"""vLLM's container."""
HTTP_PORT = 8000
"""Of the engine and of the Service."""
