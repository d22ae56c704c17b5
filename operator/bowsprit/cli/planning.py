"""From files to an answer: the same facts, wishes, planner and words that the operator uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bowsprit.api.names import MODEL_LABEL
from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.cli.inventory import Inventory
from bowsprit.cli.layouts import Layouts, Table
from bowsprit.cli.manifests import Manifests
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.plan.fleet import Fleet
from bowsprit.plan.key import ModelKey
from bowsprit.plan.planner import plan
from bowsprit.plan.result import ModelPlan
from bowsprit.plan.wish import Wish
from bowsprit.render.requests import needs_of
from bowsprit.render.revision import Revision, revision_of
from bowsprit.render.wishes import wish_of
from bowsprit.status.compute import compute
from bowsprit.status.conditions import Verdict, planned
from bowsprit.status.observed import Observed
from bowsprit.status.text import count

NEVER = "1970-01-01T00:00:00Z"
"""Transition time in a status that is only shown, never written."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the planner says of one model."""

    deployment: ModelDeployment
    facts: ModelFacts | FactsError
    plan: ModelPlan | None
    """None when there are no facts to plan with."""

    @property
    def key(self) -> ModelKey:
        return key_of(self.deployment)

    @property
    def placed(self) -> bool:
        return self.plan is not None and self.plan.placed

    def revision(self, images: Mapping[str, str]) -> Revision:
        """`images` by container, as Revision.images has them; its hash is the same for any."""
        facts = self.facts if isinstance(self.facts, ModelFacts) else None
        return revision_of(self.deployment.spec, facts, self.key.name, images)

    @property
    def verdict(self) -> Verdict:
        """The Planned condition, as the operator would write it."""
        return planned(self._observed)

    @property
    def status(self) -> dict[str, Any]:
        """The status that the operator would write right after planning."""
        return compute(self._observed, None, NEVER)

    @property
    def _observed(self) -> Observed:
        return Observed(
            key=self.key,
            generation=self.deployment.metadata.generation,
            spec=self.deployment.spec,
            facts=None if self.plan is not None and isinstance(self.facts, FactsError) else self.facts,
            plan=self.plan,
            target=self.revision({}).hash,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    models: tuple[ModelAnswer, ...]
    """In the order of (namespace, name)."""
    fleet: Fleet
    inventory: Inventory

    @property
    def placed(self) -> bool:
        return all(model.placed for model in self.models)

    @property
    def notes(self) -> list[str]:
        """Models that run already: a plan on files is for replicas beside those."""
        held: Counter[ModelKey] = Counter()
        for pod in self.inventory.pods:
            if pod.holds and (name := pod.labels.get(MODEL_LABEL)):
                held[ModelKey(pod.namespace, name)] += sum(gpus for _, gpus in pod.gpus)
        return [
            f"{model.key} runs already: its pods keep {count(held[model.key], 'GPU')}, and what is planned "
            "here stands beside them"
            for model in self.models
            if held[model.key]
        ]


def answer(manifests: Manifests, inventory: Inventory, layouts: Layouts) -> Answer:
    """Plan all models together on what is free now; every pod of the inventory keeps its GPUs."""
    fleet = inventory.fleet
    facts = {key_of(each): manifests.facts_of(each) for each in manifests.deployments}
    wishes = [
        wish
        for each in manifests.deployments
        if (wish := _wish(each, facts[key_of(each)], layouts.of(key_of(each)))) is not None
    ]
    plans: Mapping[ModelKey, ModelPlan] = plan(wishes, fleet).by_key
    models = [
        ModelAnswer(each, facts[key_of(each)], plans.get(key_of(each))) for each in manifests.deployments
    ]
    return Answer(tuple(models), fleet, inventory)


def key_of(deployment: ModelDeployment) -> ModelKey:
    return ModelKey(deployment.metadata.namespace, deployment.metadata.name)


def _wish(deployment: ModelDeployment, facts: ModelFacts | FactsError, measured: Table | None) -> Wish | None:
    """None when nothing can be planned: no facts, and no table that replaces them."""
    if isinstance(facts, FactsError) and measured is None:
        return None
    wish = wish_of(deployment, None if isinstance(facts, FactsError) else facts)
    needs = needs_of(wish.key.name, revision_of(deployment.spec, wish.facts, wish.key.name, {}))
    return replace(wish, measured=measured, needs=needs)
