"""Facts of each model, read from the ConfigMap that its spec names, once per version of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.cluster.cache import Cache, ObjectKey
from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import NotFound
from bowsprit.cluster.resources import CONFIG_MAPS
from bowsprit.controller.book import config_map_of
from bowsprit.controller.children import digest
from bowsprit.controller.frame import Declared
from bowsprit.facts.config_map import facts_from_config_map, no_config_named
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.plan.key import ModelKey
from bowsprit.render.wishes import dtype_of, hf_overrides_of

Facts = ModelFacts | FactsError


class FactSource:
    """Reads and remembers. `versions` is the cache of ConfigMap versions: their contents are never cached."""

    def __init__(self, client: KubeClient, versions: Cache[str]) -> None:
        self._client = client
        self._versions = versions
        self._known: dict[ModelKey, tuple[str, Facts]] = {}

    def forget(self, key: ModelKey) -> None:
        self._known.pop(key, None)

    async def read(self, declared: Declared) -> Facts | None:
        """The model's facts, or why there are none; None when the spec cannot be read."""
        if declared.deployment is None:
            return None
        source = config_map_of(declared)
        if source is None:
            return no_config_named()
        spec = declared.deployment.spec
        stamp = self._stamp(source, spec)
        known = self._known.get(declared.key)
        if known is None or known[0] != stamp:
            config_map = await self._fetch(source)
            facts = facts_from_config_map(
                source.name, source.namespace, config_map, hf_overrides_of(spec), dtype_of(spec)
            )
            self._known[declared.key] = (stamp, facts)
        return self._known[declared.key][1]

    def is_read(self, declared: Declared) -> bool:
        """`read` would answer without asking the API server."""
        source = config_map_of(declared)
        if declared.deployment is None or source is None:
            return True
        stamp = self._stamp(source, declared.deployment.spec)
        return self._known.get(declared.key, ("", None))[0] == stamp

    def _stamp(self, source: ObjectKey, spec: ModelDeploymentSpec) -> str:
        return digest([source, self._versions.get(source), hf_overrides_of(spec), dtype_of(spec)])

    async def _fetch(self, source: ObjectKey) -> Mapping[str, Any] | None:
        if self._versions.get(source) is None:
            return None
        try:
            return await self._client.get(CONFIG_MAPS, source.namespace, source.name)
        except NotFound:
            return None
