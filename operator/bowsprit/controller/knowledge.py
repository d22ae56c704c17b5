"""What is known of a model beside its spec: facts, and the report that they may come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bowsprit.api.defaults import RUNTIME_IMAGE
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.controller.children import Kept
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.render.images import pinned_images
from bowsprit.render.revision import Revision
from bowsprit.render.runtime import RUNTIME_CONTAINER
from bowsprit.render.surroundings import images_of


@dataclass(frozen=True, slots=True)
class StandIn:
    """A revision that serves, and the facts that it was made with."""

    revision: Revision
    facts: ModelFacts


@dataclass(frozen=True, slots=True)
class Knowledge:
    facts: ModelFacts | FactsError | None = None
    """None while they cannot be known: the spec cannot be read, or preflight has not let it pass."""
    kept: Kept | None = None
    """What preflight reported of the present spec."""
    runtime_image: str = RUNTIME_IMAGE
    """Of what is started anew."""
    stand_in: StandIn | None = None
    """What is planned and kept right while nothing is known of the present spec (it is unproven or broken, or
    its facts are wrong or gone), or when the revision that it asks for has failed."""

    def images(self, spec: ModelDeploymentSpec) -> Mapping[str, str]:
        """Images of a new revision by container: the runtime's, and what preflight ran by its digest."""
        named = images_of(spec, self.runtime_image)
        ran = dict(self.kept.images) if self.kept is not None else {}
        proven = {name: (image, ran[name]) for name, image in named.items() if name in ran}
        return {RUNTIME_CONTAINER: self.runtime_image, **pinned_images(proven)}
