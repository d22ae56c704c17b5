"""ModelFacts from the ConfigMap that a ModelDeployment names, with words for one that is missing or lacks a
key.

The operator reads the ConfigMap from the cluster and the CLI from a file; what it must hold is said here,
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bowsprit.api.reasons import Reason
from bowsprit.facts.config import config_digest, facts_from_config
from bowsprit.facts.model import FactsError, ModelFacts

CONFIG_KEY = "config.json"
INDEX_KEY = "model.safetensors.index.json"


def facts_from_config_map(
    name: str,
    namespace: str,
    config_map: Mapping[str, Any] | None,
    overrides: Mapping[str, Any],
    dtype: str | None = None,
) -> ModelFacts | FactsError:
    """`config_map` is the v1 ConfigMap, or None when there is none of that name; the rest as in
    facts_from_config."""
    if config_map is None:
        return FactsError(
            Reason.CONFIG_MISSING,
            "spec.model.config.configMapRef.name",
            f"ConfigMap {name} is not in namespace {namespace}: create it with the model's config.json "
            f"(kubectl create configmap {name} --from-file=config.json)",
        )
    data = config_map.get("data") or {}
    if CONFIG_KEY not in data:
        keys = ", ".join(sorted({*data, *(config_map.get("binaryData") or {})})) or "none"
        return FactsError(
            Reason.CONFIG_MISSING,
            "spec.model.config",
            f"ConfigMap {name} has no key {CONFIG_KEY} (its keys: {keys}): add the model's config.json",
        )
    facts = facts_from_config(
        data[CONFIG_KEY], overrides=overrides, dtype=dtype, index_json=data.get(INDEX_KEY)
    )
    if isinstance(facts, FactsError):
        return facts
    return replace(facts, users_config=config_digest(data[CONFIG_KEY]))


def no_config_named() -> FactsError:
    """The spec names no ConfigMap at all."""
    return FactsError(
        Reason.CONFIG_MISSING,
        "spec.model.config",
        "spec.model.config is not set: name a ConfigMap that holds the model's config.json "
        "(kubectl create configmap NAME --from-file=config.json)",
    )
