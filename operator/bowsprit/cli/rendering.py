"""The manifests of one planned model, by the operator's own renderer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from bowsprit.cli.planning import ModelAnswer
from bowsprit.render.owner import Owner
from bowsprit.render.preflight import preflight_job, preflight_key
from bowsprit.render.revision import to_controller_revision
from bowsprit.render.runtime import RUNTIME_CONTAINER
from bowsprit.render.services import services
from bowsprit.render.wishes import is_required
from bowsprit.render.workload import workload

NO_UID = "00000000-0000-0000-0000-000000000000"
"""Stands in ownerReferences for an object that was never applied."""


def rendered(model: ModelAnswer, runtime_image: str) -> Iterator[dict[str, Any]]:
    """The preflight Job where it is asked for; of a model that has replicas also ControllerRevision, Service,
    and a workload for each layout."""
    owner = Owner(model.key.name, model.key.namespace, model.deployment.metadata.uid or NO_UID)
    spec = model.deployment.spec
    if is_required(spec):
        yield preflight_job(owner, preflight_key(spec, owner.namespace), spec, runtime_image)
    if model.plan is None or not model.plan.replicas:
        return
    revision = model.revision({RUNTIME_CONTAINER: runtime_image})
    yield to_controller_revision(revision, owner)
    yield from services(owner, revision.hash)
    layouts = Counter(replica.layout for replica in model.plan.replicas)
    for layout, replicas in layouts.items():
        yield workload(owner, revision, layout, replicas)
