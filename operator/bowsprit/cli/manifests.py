"""ModelDeployments and their ConfigMaps from `-f` files, checked as the API server and the operator would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from bowsprit.api.v1alpha1 import API_VERSION, KIND, ModelDeployment
from bowsprit.api.validate import validate
from bowsprit.cli.documents import Document, objects, read_files
from bowsprit.cli.problems import BadInput, Place, Problem
from bowsprit.facts.config_map import facts_from_config_map, no_config_named
from bowsprit.facts.model import FactsError, ModelFacts
from bowsprit.plan.key import ModelKey
from bowsprit.render.problems import problems as unrenderable
from bowsprit.render.wishes import dtype_of, hf_overrides_of

CONFIG_MAP = "ConfigMap"


@dataclass(frozen=True, slots=True)
class Manifests:
    deployments: tuple[ModelDeployment, ...]
    """In the order of (namespace, name)."""
    config_maps: Mapping[tuple[str, str], Mapping[str, Any]]
    """By (namespace, name)."""

    def facts_of(self, deployment: ModelDeployment) -> ModelFacts | FactsError:
        source = deployment.spec.model.config
        if source is None:
            return no_config_named()
        namespace, name = deployment.metadata.namespace, source.config_map_ref.name
        found = self.config_maps.get((namespace, name))
        spec = deployment.spec
        return facts_from_config_map(name, namespace, found, hf_overrides_of(spec), dtype_of(spec))


def read_manifests(paths: list[str]) -> Manifests:
    """Read `-f` files and folders. Raises BadInput with every fault of every file."""
    read = objects(read_files(paths))
    problems = list(read.problems)
    deployments: dict[ModelKey, ModelDeployment] = {}
    config_maps: dict[tuple[str, str], Mapping[str, Any]] = {}
    seen: dict[tuple[str, str, str], Document] = {}
    for document in read.documents:
        found = list(_faults(document)) or list(_twice(document, seen))
        problems += found
        if found:
            continue
        namespace, name = _named(document.body)
        if document.body["kind"] == CONFIG_MAP:
            config_maps[namespace, name] = document.body
        else:
            deployments[ModelKey(namespace, name)] = ModelDeployment.model_validate(document.body)
    if not deployments and not problems:
        problems += [Problem(Place(path), "", f"no {KIND} in it") for path in paths]
    if problems:
        raise BadInput(problems)
    return Manifests(tuple(deployments[key] for key in sorted(deployments)), config_maps)


def _faults(document: Document) -> Iterator[Problem]:
    kind, version = document.body.get("kind"), document.body.get("apiVersion")
    if kind == KIND and version == API_VERSION:
        yield from _deployment_faults(document)
    elif kind == CONFIG_MAP and version == "v1":
        yield from _config_map_faults(document)
    elif kind in (KIND, CONFIG_MAP):
        wanted = API_VERSION if kind == KIND else "v1"
        yield Problem(document.place, "apiVersion", f"{version!r} is not {wanted}")
    else:
        wanted = f"{KIND} ({API_VERSION}) and {CONFIG_MAP} (v1) are read here"
        yield Problem(document.place, "kind", f"{kind!r} is not used; {wanted}")


def _deployment_faults(document: Document) -> Iterator[Problem]:
    """What the API server would refuse; when there is nothing, what the operator would (InvalidSpec)."""
    faults = validate(document.body)
    for fault in faults:
        yield Problem(document.place, fault.field, fault.message)
    if faults:
        return
    try:
        deployment = ModelDeployment.model_validate(document.body)
    except ValidationError as error:
        for each in error.errors():
            yield Problem(document.place, ".".join(map(str, each["loc"])), each["msg"])
        return
    for problem in unrenderable(deployment.spec):
        field, _, message = problem.partition(": ")
        yield Problem(document.place, field, message)


def _config_map_faults(document: Document) -> Iterator[Problem]:
    given = document.body.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        yield Problem(document.place, "metadata.name", "is missing")
    elif not isinstance(metadata.get("namespace", ""), str):
        yield Problem(document.place, "metadata.namespace", "must be text")
    data = document.body.get("data")
    if data is not None and not isinstance(data, dict):
        yield Problem(document.place, "data", "must be a map from file names to texts")
    for key, value in data.items() if isinstance(data, dict) else ():
        if not isinstance(value, str):
            message = f"must be text, not a {type(value).__name__}; put the file in as a block (|)"
            yield Problem(document.place, f"data[{key}]", message)


def _twice(document: Document, seen: dict[tuple[str, str, str], Document]) -> Iterator[Problem]:
    namespace, name = _named(document.body)
    kind = document.body["kind"]
    before = seen.setdefault((kind, namespace, name), document)
    if before is not document:
        message = f"{kind} {namespace}/{name} stands in {before.place} already; keep one of them"
        yield Problem(document.place, "metadata.name", message)


def _named(body: Mapping[str, Any]) -> tuple[str, str]:
    metadata = body["metadata"]
    return metadata.get("namespace") or "default", metadata["name"]
