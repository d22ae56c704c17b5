"""ModelDeployments in a line each, for tables of what the API takes and what it refuses."""

from __future__ import annotations

from typing import Any, NamedTuple

Manifest = dict[str, Any]


def manifest(name: str = "llama", /, **spec: Any) -> Manifest:
    """A sound ModelDeployment with some fields of spec replaced."""
    return {
        "apiVersion": "bowsprit.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name},
        "spec": {"model": {"uri": "hf://meta-llama/Llama-3.1-70B"}, **spec},
    }


def model(uri: str = "hf://meta-llama/Llama-3.1-70B", **fields: Any) -> Manifest:
    return manifest(model={"uri": uri, **fields})


def plugin(**fields: Any) -> Manifest:
    return manifest(plugins=[fields])


def args(*arguments: str, uri: str = "hf://meta-llama/Llama-3.1-70B") -> Manifest:
    return manifest(model={"uri": uri}, engine={"args": list(arguments)})


def env(**variable: Any) -> Manifest:
    return manifest(engine={"env": [variable]})


def resources(**fields: Any) -> Manifest:
    return manifest(engine={"resources": fields})


def toleration(**fields: Any) -> Manifest:
    return manifest(accelerator={"tolerations": [fields]})


def pod(**spec: Any) -> Manifest:
    return manifest(template={"spec": spec})


def container(**fields: Any) -> Manifest:
    return pod(containers=[{"name": "engine", **fields}])


DIGEST = "a" * 64


class Refused(NamedTuple):
    """A manifest with one fault."""

    manifest: Manifest
    field: str
    message: str
    """A part of the message that the fault is answered with."""
