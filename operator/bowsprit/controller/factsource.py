"""Facts of each model: out of what preflight reported, or from the ConfigMap that its spec names, once per
version of it; and where there are none, those of the revision that serves meanwhile."""

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
from bowsprit.controller.knowledge import Knowledge, StandIn
from bowsprit.facts.config_map import facts_from_config_map, no_config_named
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.facts.report import Verdict
from bowsprit.facts.told import facts_from_told, with_told
from bowsprit.plan.key import ModelKey
from bowsprit.render.preflight import preflight_key, preflight_name
from bowsprit.render.revision import Revision
from bowsprit.render.wishes import dtype_of, hf_overrides_of
from bowsprit.status.revisions import recorded_failure, recorded_serving

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
        self._stored: dict[ModelKey, tuple[Revision, Facts]] = {}

    def forget(self, key: ModelKey) -> None:
        self._known.pop(key, None)
        self._reported.pop(key, None)
        self._stored.pop(key, None)

    async def read(self, declared: Declared) -> Knowledge:
        """What is known of the model. The API server is asked once for each version of a ConfigMap."""
        facts, kept = await self._present(declared)
        is_needed = not isinstance(facts, ModelFacts) or recorded_failure(declared.status) is not None
        stand_in = self._stand_in(declared) if is_needed else None
        return Knowledge(facts, kept, self._runtime_image, stand_in)

    async def _present(self, declared: Declared) -> tuple[Facts | None, Kept | None]:
        """Of the spec as it is now: facts, and the report that they may come from."""
        if declared.deployment is None:
            return None, None
        if not declared.preflight:
            return await self._configured(declared), None
        kept = self._kept(declared, declared.preflight)
        if kept is None or kept.report.verdict is Verdict.BROKEN:
            return None, kept
        facts = self._from_report(declared, kept)
        if isinstance(facts, FactsError) and config_map_of(declared) is not None:
            facts = await self._configured(declared)
            if isinstance(facts, ModelFacts):
                facts = with_told(kept.report.facts, facts)
        return facts, kept

    def is_read(self, declared: Declared) -> bool:
        """`read` would answer without asking the API server."""
        source = config_map_of(declared)
        if declared.deployment is None or source is None:
            return True
        if declared.preflight:
            kept = self._kept(declared, declared.preflight)
            if kept is None or not isinstance(self._from_report(declared, kept), FactsError):
                return True
        stamp = self._stamp(source, declared.deployment.spec)
        return self._known.get(declared.key, ("", None))[0] == stamp

    def _stand_in(self, declared: Declared) -> StandIn | None:
        """The revision that requests go to, with the facts that it was made with.

        Those need nothing that may be gone by now: a report, a ConfigMap, the contract of their day. One that
        was stored without them has its own report at best.
        """
        if declared.deployment is None:
            return None
        serving = recorded_serving(declared.status)
        mine = [child for child in self._book.children_of(declared.key) if child.owner == declared.uid]
        stored = [child.stored for child in mine if child.stored is not None]
        revision = next((each for each in stored if each.hash == serving), None)
        if revision is None:
            return None
        facts = self._from_revision(declared.key, revision)
        if isinstance(facts, FactsError):
            kept = self._kept(declared, preflight_key(revision.said, declared.key.namespace))
            facts = facts if kept is None else self._read_report(declared.key, kept, revision.spec)
        return StandIn(revision, facts) if isinstance(facts, ModelFacts) else None

    def _from_revision(self, key: ModelKey, revision: Revision) -> Facts:
        known = self._stored.get(key)
        if known is None or known[0] is not revision:
            spec = revision.spec
            self._stored[key] = (
                revision,
                facts_from_told(revision.told, hf_overrides_of(spec), dtype_of(spec)),
            )
        return self._stored[key][1]

    def _kept(self, declared: Declared, key: str) -> Kept | None:
        """What preflight reported of a spec of the model, by its hash."""
        name = preflight_name(declared.key.name, key)
        child = self._book.child(CONFIG_MAPS, declared.key.namespace, name)
        mine = child is not None and child.owner == declared.uid and not child.terminating
        return child.kept if child is not None and mine else None

    def _from_report(self, declared: Declared, kept: Kept) -> Facts:
        assert declared.deployment is not None
        return self._read_report(declared.key, kept, declared.deployment.spec)

    def _read_report(self, key: ModelKey, kept: Kept, spec: ModelDeploymentSpec) -> Facts:
        """Another spec has another report, and that is the same object until it is read anew."""
        known = self._reported.get(key)
        if known is None or known[0] is not kept:
            facts = facts_from_told(kept.report.facts, hf_overrides_of(spec), dtype_of(spec))
            self._reported[key] = (kept, facts)
        return self._reported[key][1]

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
