"""How one operator process is set up. Each field is a `bowsprit run` option and a BOWSPRIT_ variable."""

from __future__ import annotations

from dataclasses import dataclass, field

from bowsprit.api.defaults import RUNTIME_IMAGE
from bowsprit.inventory.products import ProductTable


@dataclass(frozen=True, slots=True)
class Settings:
    kubeconfig: str | None = None
    """Path; None takes $KUBECONFIG, ~/.kube/config or the pod's own account."""
    context: str | None = None
    lease_name: str = "bowsprit-operator"
    lease_namespace: str = "default"
    identity: str = ""
    """Name of this process in the Lease; the host name and process id when empty."""
    listen_host: str = "0.0.0.0"
    listen_port: int = 8080
    """For /metrics, /healthz and /readyz; 0 takes a free one."""
    settle_s: float = 0.1
    """How long events are collected before a planning pass."""
    resync_s: float = 300.0
    """How often everything is listed again and compared, in case a watch lost something."""
    bind_timeout_s: float = 30.0
    """How long a pinned pod may stay unbound before its replica is planned again."""
    writers: int = 16
    """Models that are written to the API server at the same time."""
    runtime_image: str = RUNTIME_IMAGE
    """Bowsprit's own code in engine pods; what runs already keeps the image that it was started with."""
    products: ProductTable = field(default_factory=ProductTable)
