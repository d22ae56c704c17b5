"""Labels of every rendered object, and the selectors made of them."""

from __future__ import annotations

from bowsprit.api import names
from bowsprit.plan.result import Layout
from bowsprit.render.layouts import layout_key

MODEL = names.MODEL_LABEL
REVISION = names.REVISION_LABEL
LAYOUT = names.LAYOUT_LABEL
ROLE = names.ROLE_LABEL
PREFLIGHT = names.PREFLIGHT_LABEL
PREFLIGHT_OF = names.PREFLIGHT_OF_LABEL

HEAD = names.HEAD
WORKER = names.WORKER

NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
PART_OF = "app.kubernetes.io/part-of"
MANAGED_BY = "app.kubernetes.io/managed-by"


def model_labels(owner_name: str) -> dict[str, str]:
    """Of everything that belongs to a model."""
    return {
        NAME: "bowsprit",
        INSTANCE: owner_name,
        COMPONENT: "engine",
        PART_OF: "bowsprit",
        MANAGED_BY: "bowsprit",
        MODEL: owner_name,
    }


def revision_labels(owner_name: str, revision_hash: str) -> dict[str, str]:
    return {**model_labels(owner_name), REVISION: revision_hash}


def workload_labels(owner_name: str, revision_hash: str, layout: Layout) -> dict[str, str]:
    return {**revision_labels(owner_name, revision_hash), LAYOUT: layout_key(layout)}


def workload_selector(owner_name: str, revision_hash: str, layout: Layout) -> dict[str, str]:
    """The pods of one workload and no others."""
    return {MODEL: owner_name, REVISION: revision_hash, LAYOUT: layout_key(layout)}


def head_selector(owner_name: str, revision_hash: str) -> dict[str, str]:
    """The pods that answer requests for one revision, in whatever layout."""
    return {MODEL: owner_name, REVISION: revision_hash, ROLE: HEAD}
