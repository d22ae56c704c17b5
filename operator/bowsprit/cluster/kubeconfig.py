"""Which API server, and as whom: by kubeconfig as kubectl finds it, else with the pod's own account.

The official client reads the files. Of one that it cannot use it says little, and may say what stands in it,
tokens too; so the faults are told here, in sentences that name the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigMerger

_ODD = (AttributeError, LookupError, TypeError, ValueError, yaml.YAMLError)
"""What the client stumbles over in a file that is no kubeconfig."""


async def load(configuration: Configuration, kubeconfig: str | None, context: str | None) -> str:
    """Fill in the server and who asks; returns where it stands: the file, or the pod's account.

    Without a file named, those of $KUBECONFIG or ~/.kube/config. Whoever names a file or a context is never
    given another cluster. Raises ConfigException when there is nothing, or a file that cannot be used.
    """
    paths = _paths(kubeconfig)
    if files := _existing(paths):
        await _load_files(configuration, files, context)
        return ", ".join(files)
    absent = f"there is no file {' or '.join(paths)}"
    if kubeconfig or context:
        raise ConfigException(absent)
    try:
        config.load_incluster_config(client_configuration=configuration)
    except ConfigException:
        raise ConfigException(f"{absent}, and this is no pod of a cluster") from None
    return "the pod's account"


def _paths(kubeconfig: str | None) -> list[str]:
    listed = [kubeconfig] if kubeconfig else os.environ.get("KUBECONFIG", "").split(os.pathsep)
    return [str(Path(path).expanduser()) for path in listed if path] or [str(Path.home() / ".kube/config")]


def _existing(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]


async def _load_files(configuration: Configuration, files: Sequence[str], context: str | None) -> None:
    merged, where = os.pathsep.join(files), ", ".join(files)
    contexts, current = _contexts(merged, where)
    if not contexts:
        raise ConfigException(f"{where}: there is no context in it")
    chosen = context or current
    if chosen not in contexts:
        lacks = f"context {chosen!r}" if chosen else "current-context"
        known = ", ".join(sorted(contexts))
        raise ConfigException(f"{where}: it has no {lacks}; its contexts are: {known}")
    try:
        await config.load_kube_config(merged, chosen, configuration)
    except (ConfigException, OSError, *_ODD):
        raise ConfigException(
            f"{where}: context {chosen!r} is not complete: see that its cluster and user are there, and the "
            "files that they name"
        ) from None


def _contexts(merged: str, where: str) -> tuple[list[str], Any]:
    """(names of the contexts, name of the current one)."""
    try:
        found = KubeConfigMerger(merged).config.value
        return [str(each["name"]) for each in found["contexts"]], found.get("current-context")
    except OSError as error:
        raise ConfigException(f"{where}: cannot be read: {error.strerror}") from None
    except (ConfigException, *_ODD):
        raise ConfigException(f"{where}: not a kubeconfig") from None
