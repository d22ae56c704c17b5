"""Names of everything that is rendered, and the arithmetic that keeps them valid.

The longest name that a workload's children carry is the label value `controller-revision-hash` of a worker
pod: `<workload>-<group index>-<up to 10 characters>` (LeaderWorkerSet names the StatefulSet of a group's
workers after its leader pod, and the StatefulSet controller labels pods with its ControllerRevision's name).
With 10,000 replicas the index has 4 digits, so 63 - 11 - 5 = 47 characters are left for the workload.
"""

from __future__ import annotations

from bowsprit.plan.result import Layout
from bowsprit.render.canonical import short_hash
from bowsprit.render.layouts import layout_data

FIELD_MANAGER = "bowsprit"

PLACEMENT_GATE = "bowsprit.dev/placement"
LAYOUT_ANNOTATION = "bowsprit.dev/layout"
LAYOUT_ENV = "BOWSPRIT_LAYOUT"
PLUGINS_ENV = "BOWSPRIT_PLUGINS"
PREFLIGHT_ENV = "BOWSPRIT_PREFLIGHT"
VERIFY_ENV = "BOWSPRIT_VERIFY"

REPORT_KEY, IMAGES_KEY = "report.json", "images.json"
"""In the ConfigMap that keeps what preflight reported."""

OWN_VOLUMES = "bowsprit-"
"""How the names of volumes begin that users may not replace."""

MASTER_PORT = 29501
"""vLLM's own default for the rendezvous of several pods."""

WORKLOAD_NAME_MAX = 47
_HASH_LENGTH = 8


def workload_name(owner_name: str, revision_hash: str, layout: Layout) -> str:
    """`<name>-<8 hex>`, unique per (model, revision, layout) even where the name had to be shortened."""
    digest = short_hash([owner_name, revision_hash, layout_data(layout)], _HASH_LENGTH)
    stem = owner_name[: WORKLOAD_NAME_MAX - _HASH_LENGTH - 1].rstrip("-")
    return f"{stem}-{digest}"


def revision_name(owner_name: str, revision_hash: str) -> str:
    """Name of the ControllerRevision."""
    return f"{owner_name}-{revision_hash}"


def service_name(owner_name: str) -> str:
    """The head Service carries the model's own name: that is the URL that users write."""
    return owner_name
