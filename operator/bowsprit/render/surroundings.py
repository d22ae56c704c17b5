"""What every process of a model finds around it, serving or in preflight: files, volumes and variables.

Both take them from here, so that what was proven is what serves.
"""

from __future__ import annotations

from typing import Any

from bowsprit.api import defaults
from bowsprit.api.names import ENGINE_CONTAINER
from bowsprit.api.v1alpha1 import ModelDeploymentSpec
from bowsprit.render import plugins, resources, runtime
from bowsprit.render.model_source import IMAGE_FOLDER, MODEL_MOUNT, ModelSource, model_source
from bowsprit.render.revision import Revision

HOME = "/home/vllm"
SHARED_MEMORY_VOLUME, HOME_VOLUME, MODEL_VOLUME = "shared-memory", "home", "bowsprit-model"
MODEL_CONTAINER = "model"


def common_env(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """Of every process that loads vLLM, serving or not."""
    env: list[dict[str, Any]] = [
        {"name": "HOME", "value": HOME},
        {"name": "USER", "value": "vllm"},  # getpass: the uid need not be in the image's passwd
        {"name": "HF_HOME", "value": f"{HOME}/.cache/huggingface"},
        {"name": "VLLM_CACHE_ROOT", "value": f"{HOME}/.cache/vllm"},
        {"name": "XDG_CACHE_HOME", "value": f"{HOME}/.cache"},
        {"name": "XDG_CONFIG_HOME", "value": f"{HOME}/.config"},
        # Reporting a cluster's models to a third party is the cluster owner's decision: "0" in engine.env
        # allows it.
        {"name": "VLLM_NO_USAGE_STATS", "value": "1"},
        *plugins.plugin_env(spec.plugins or ()),
    ]
    if source_of(spec).local:
        # All that is needed is there: a hub that cannot be reached would only cost minutes of waiting.
        env.append({"name": "HF_HUB_OFFLINE", "value": "1"})
    if spec.model.token_secret_ref:
        reference = spec.model.token_secret_ref.model_dump()
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    return env


def with_users(env: list[dict[str, Any]], spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """The user's own variables come last, and stand in place of ours of the same name."""
    given = list(spec.engine.env or ()) if spec.engine else []
    replaced = {variable.get("name") for variable in given}
    return [*(variable for variable in env if variable["name"] not in replaced), *given]


def mounts(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """Of every container that loads vLLM."""
    found: list[dict[str, Any]] = [
        {"name": SHARED_MEMORY_VOLUME, "mountPath": "/dev/shm"},
        {"name": HOME_VOLUME, "mountPath": HOME},
        runtime.runtime_mount(),
        *plugins.plugin_mounts(spec.plugins or ()),
    ]
    if source_of(spec).local:
        found.append({"name": MODEL_VOLUME, "mountPath": MODEL_MOUNT, "readOnly": True})
    return found


def volumes(spec: ModelDeploymentSpec) -> list[dict[str, Any]]:
    """Of every pod of the model."""
    size = (spec.engine.shared_memory if spec.engine else None) or defaults.SHARED_MEMORY
    found: list[dict[str, Any]] = [
        {"name": SHARED_MEMORY_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": size}},
        {"name": HOME_VOLUME, "emptyDir": {}},
        runtime.runtime_volume(),
        *plugins.plugin_volumes(spec.plugins or ()),
    ]
    source = source_of(spec)
    if source.claim:
        claim = {"claimName": source.claim, "readOnly": True}
        found.append({"name": MODEL_VOLUME, "persistentVolumeClaim": claim})
    elif source.image:
        found.append({"name": MODEL_VOLUME, "emptyDir": {}})
    return found


WHOLE_MODEL = runtime.busybox("cp", "-R", IMAGE_FOLDER, MODEL_MOUNT)
"""Copies the model's folder out of its image."""
_BUSYBOX = " ".join(runtime.busybox())
# Backticks, for Kubernetes takes $(…) for a variable of its own.
_BEGINNING = (
    f'{_BUSYBOX} head -c {8 * 2**20} "$1" > "$2" && {_BUSYBOX} truncate -s `{_BUSYBOX} stat -c %s "$1"` "$2"'
)
"""The first 8 MiB of a file, and a hole as long as the rest."""
SMALL_FILES = runtime.busybox(
    *("find", IMAGE_FOLDER),
    *("-type", "d", "-exec", *runtime.busybox("mkdir", "-p", f"{MODEL_MOUNT}{{}}"), ";"),
    *("-o", "-type", "f", "-size", "-131072"),
    *("-exec", *runtime.busybox("cp", "{}", f"{MODEL_MOUNT}{{}}"), ";"),
    *("-o", "-type", "f"),
    *("-exec", *runtime.busybox("sh", "-c", _BEGINNING, "sh", "{}", f"{MODEL_MOUNT}{{}}"), ";"),
)
"""Copies what is smaller than 64 MiB, which is everything but the weights; of those, their headers."""


def init_containers(revision: Revision, copy_model: list[str]) -> list[dict[str, Any]]:
    """Of every pod: the runtime first, for its programs do the work of the others."""
    spec, images = revision.spec, revision.images
    found = [runtime.runtime_init_container(images.get(runtime.RUNTIME_CONTAINER, defaults.RUNTIME_IMAGE))]
    if (image := source_of(spec).image) is not None:
        found.append(_model_container(images.get(MODEL_CONTAINER, image), copy_model))
    given = spec.plugins or ()
    # The user's own variables: pip may need a proxy or certificates.
    env = with_users([*plugins.plugin_env(given), {"name": "HOME", "value": "/tmp"}], spec)
    return [*found, *plugins.plugin_init_containers(given, images, engine_image(revision), env)]


def _model_container(image: str, copy: list[str]) -> dict[str, Any]:
    return {
        "name": MODEL_CONTAINER,
        "image": image,
        "command": copy,
        "resources": resources.COPYING,
        "volumeMounts": [runtime.runtime_mount(), {"name": MODEL_VOLUME, "mountPath": MODEL_MOUNT}],
        "securityContext": runtime.CONTAINER_SECURITY,
    }


def images_of(spec: ModelDeploymentSpec, runtime_image: str) -> dict[str, str]:
    """The image of each container as the spec names it; those that install take the engine's."""
    engine = (spec.engine.image if spec.engine else None) or defaults.ENGINE_IMAGE
    model = source_of(spec).image
    return {
        runtime.RUNTIME_CONTAINER: runtime_image,
        ENGINE_CONTAINER: engine,
        **({MODEL_CONTAINER: model} if model else {}),
        **{
            plugins.plugin_container(index): plugin.image
            for index, plugin in enumerate(spec.plugins or ())
            if plugin.image
        },
    }


def engine_image(revision: Revision) -> str:
    """By digest where preflight has run it, else as the spec names it."""
    named = revision.spec.engine.image if revision.spec.engine else None
    return revision.images.get(ENGINE_CONTAINER) or named or defaults.ENGINE_IMAGE


def source_of(spec: ModelDeploymentSpec) -> ModelSource:
    # A URI that the API refuses anyway is handed to vLLM as it is.
    return model_source(spec.model.uri) or ModelSource(spec.model.uri)
