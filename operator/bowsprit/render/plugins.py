"""Plugins: wheels from images or an index, installed beside the engine before it starts, the same in every
rank.

Each plugin image copies its wheels into a shared volume, by a program of the runtime image, so it needs none
of its own; then one init container in the engine image installs all plugins, in order, with the engine's own
pip. The launcher reads the same list and makes them known to vLLM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bowsprit.api import defaults
from bowsprit.api.v1alpha1 import Plugin
from bowsprit.render import resources
from bowsprit.render.canonical import canonical_json
from bowsprit.render.names import PLUGINS_ENV
from bowsprit.render.runtime import CONTAINER_SECURITY, busybox, command, runtime_mount

INSTALL_CONTAINER = "install-plugins"
WHEELS_VOLUME, WHEELS_MOUNT = "bowsprit-wheels", "/opt/bowsprit/wheels"
SITE_VOLUME, SITE_MOUNT = "bowsprit-plugins", "/opt/bowsprit/plugins"


def plugin_volumes(plugins: Sequence[Plugin]) -> list[dict[str, Any]]:
    if not plugins:
        return []
    return [{"name": WHEELS_VOLUME, "emptyDir": {}}, {"name": SITE_VOLUME, "emptyDir": {}}]


def plugin_mounts(plugins: Sequence[Plugin]) -> list[dict[str, Any]]:
    """Of the engine container, which only reads."""
    return [{"name": SITE_VOLUME, "mountPath": SITE_MOUNT, "readOnly": True}] if plugins else []


def plugin_env(plugins: Sequence[Plugin]) -> list[dict[str, Any]]:
    """Which plugins there are, in order of installation: for install, preflight and launch alike."""
    if not plugins:
        return []
    sources = [_source(index, plugin) for index, plugin in enumerate(plugins)]
    return [{"name": PLUGINS_ENV, "value": canonical_json(sources).replace("$", "$$")}]


def plugin_container(index: int) -> str:
    """Name of the init container that copies the wheels of plugin `index`."""
    return f"plugin-{index}"


def plugin_init_containers(
    plugins: Sequence[Plugin], images: Mapping[str, str], engine_image: str, env: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """One that copies for each plugin image, then one that installs everything.

    `images` names the images by container where they are pinned; `env` is what pip finds.
    """
    if not plugins:
        return []
    wheels = {"name": WHEELS_VOLUME, "mountPath": WHEELS_MOUNT}
    copies = [
        {
            "name": plugin_container(index),
            "image": images.get(plugin_container(index), plugin.image),
            "command": busybox("cp", "-R", f"{_path(plugin)}/.", _wheels(index)),
            "resources": resources.COPYING,
            "volumeMounts": [runtime_mount(), wheels],
            "securityContext": CONTAINER_SECURITY,
        }
        for index, plugin in enumerate(plugins)
        if plugin.image
    ]
    install = {
        "name": INSTALL_CONTAINER,
        "image": engine_image,
        "command": command("install"),
        "env": env,
        "resources": resources.INSTALLING,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            runtime_mount(),
            {**wheels, "readOnly": True},
            {"name": SITE_VOLUME, "mountPath": SITE_MOUNT},
        ],
        "securityContext": CONTAINER_SECURITY,
    }
    return [*copies, install]


def _source(index: int, plugin: Plugin) -> dict[str, Any]:
    common = {"target": f"{SITE_MOUNT}/{index}", "entryPoints": plugin.entry_points or []}
    if plugin.image:
        return {**common, "image": plugin.image, "path": _path(plugin), "wheels": _wheels(index)}
    return {
        **common,
        "requirement": plugin.requirement,
        "hashes": plugin.hashes or [],
        "index": plugin.index_url,
    }


def _path(plugin: Plugin) -> str:
    return (plugin.path or defaults.PLUGIN_PATH).rstrip("/")


def _wheels(index: int) -> str:
    return f"{WHEELS_MOUNT}/{index}"
