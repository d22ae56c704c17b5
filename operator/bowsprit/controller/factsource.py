"""Facts of each model: out of what preflight reported, or from the ConfigMap that its spec names, once per
version of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.cluster.cache import ObjectKey
from bowsprit.cluster.client import KubeClient
from bowsprit.cluster.errors import NotFound
from bowsprit.cluster.resources import CONFIG_MAPS
from bowsprit.controller.book import Book, config_map_of
from bowsprit.controller.children import Kept, digest
from bowsprit.controller.frame import Declared
from bowsprit.controller.knowledge import Knowledge
from bowsprit.facts.config_map import facts_from_config_map, no_config_named
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.facts.report import Verdict, facts_from_report, with_reported
from bowsprit.plan.key import ModelKey
from bowsprit.render.preflight import preflight_name
from bowsprit.render.wishes import dtype_of, hf_overrides_of

Facts = ModelFacts | FactsError


class FactSource:
    """Reads and remembers. Of ConfigMaps that are not ours only versions are cached, never contents."""

    def __init__(self, client: KubeClient, book: Book, runtime_image: str) -> None:
        self._client = client
        self._book = book
        self._runtime_image = runtime_image
        self._known: dict[ModelKey, tuple[str, Facts]] = {}
        """From the ConfigMap of the spec, with the version of what was read."""
        self._reported: dict[ModelKey, tuple[Kept, Facts]] = {}

    def forget(self, key: ModelKey) -> None:
        self._known.pop(key, None)
        self._reported.pop(key, None)

    async def read(self, declared: Declared) -> Knowledge:
        """What is known of the model. The API server is asked once for each version of a ConfigMap."""
        if declared.deployment is None:
            return Knowledge(None, None, self._runtime_image)
        if not declared.preflight:
            return Knowledge(await self._configured(declared), None, self._runtime_image)
        kept = self._kept(declared)
        if kept is None or kept.report.verdict is Verdict.BROKEN:
            return Knowledge(None, kept, self._runtime_image)
        facts = self._from_report(declared, kept)
        if isinstance(facts, FactsError) and config_map_of(declared) is not None:
            facts = await self._configured(declared)
            if isinstance(facts, ModelFacts):
                facts = with_reported(kept.report, facts)
        return Knowledge(facts, kept, self._runtime_image)

    def is_read(self, declared: Declared) -> bool:
        """`read` would answer without asking the API server."""
        source = config_map_of(declared)
        if declared.deployment is None or source is None:
            return True
        if declared.preflight:
            kept = self._kept(declared)
            if kept is None or not isinstance(self._from_report(declared, kept), FactsError):
                return True
        stamp = self._stamp(source, declared.deployment.spec)
        return self._known.get(declared.key, ("", None))[0] == stamp

    def _kept(self, declared: Declared) -> Kept | None:
        """What preflight reported of the present spec."""
        name = preflight_name(declared.key.name, declared.preflight)
        child = self._book.child(CONFIG_MAPS, declared.key.namespace, name)
        mine = child is not None and child.owner == declared.uid and not child.terminating
        return child.kept if child is not None and mine else None

    def _from_report(self, declared: Declared, kept: Kept) -> Facts:
        assert declared.deployment is not None
        spec, known = declared.deployment.spec, self._reported.get(declared.key)
        # Another spec has another report: it is the same object as long as it is the same report.
        if known is None or known[0] is not kept:
            facts = facts_from_report(kept.report, hf_overrides_of(spec), dtype_of(spec))
            self._reported[declared.key] = (kept, facts)
        return self._reported[declared.key][1]

    async def _configured(self, declared: Declared) -> Facts:
        """By the ConfigMap that the spec names."""
        assert declared.deployment is not None
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

    def _stamp(self, source: ObjectKey, spec: ModelDeploymentSpec) -> str:
        return digest([source, self._book.config_maps.get(source), hf_overrides_of(spec), dtype_of(spec)])

    async def _fetch(self, source: ObjectKey) -> Mapping[str, Any] | None:
        if self._book.config_maps.get(source) is None:
            return None
        try:
            return await self._client.get(CONFIG_MAPS, source.namespace, source.name)
        except NotFound:
            return None
