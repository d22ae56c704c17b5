"""Plugins: wheels from images or an index, installed beside the engine before it starts, the same in every
rank.

Each plugin image copies its wheels into a shared volume; then one init container in the engine image installs
all plugins, in order, with the engine's own pip: `--no-deps`, because a dependency that replaces torch or
vLLM breaks the engine (pains 58), and each into a directory of its own, because `pip --target` keeps what it
finds. PYTHONPATH and VLLM_PLUGINS make them known to every process of vLLM.

Plugin images need `cp`. Images without any program come with Bowsprit's runtime image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bowsprit.api import defaults
from bowsprit.api.v1alpha1 import Plugin
from bowsprit.render.canonical import canonical_json

WHEELS_VOLUME, WHEELS_MOUNT = "plugin-wheels", "/opt/bowsprit/wheels"
SITE_VOLUME, SITE_MOUNT = "plugins", "/opt/bowsprit/plugins"

INSTALLER = r"""
import json, os, pathlib, shutil, subprocess, sys, tempfile

for target, plugin in json.loads(os.environ["BOWSPRIT_PLUGINS"]).items():
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-cache-dir", "--target", target]
    shutil.rmtree(target, ignore_errors=True)
    if "wheels" in plugin:
        what = sorted(str(wheel) for wheel in pathlib.Path(plugin["wheels"]).glob("*.whl"))
        if not what:
            sys.exit(f"bowsprit: the plugin image {plugin['image']} holds no *.whl in {plugin['path']}")
        what.insert(0, "--no-index")
    else:
        line = " ".join([plugin["requirement"], *("--hash=" + digest for digest in plugin["hashes"])])
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as requirements:
            requirements.write(line + "\n")
        what = ["-r", requirements.name, *(["--index-url", plugin["index"]] if plugin["index"] else [])]
    if subprocess.run([*pip, *what]).returncode:
        sys.exit(f"bowsprit: pip could not install plugin {plugin.get('image') or plugin['requirement']}")
""".strip()
"""Runs under the engine image's Python: no shell is needed, nor a ConfigMap for the requirements file.
BOWSPRIT_PLUGINS is a JSON object: target directory -> where the plugin comes from, in order."""


def plugin_volumes(plugins: Sequence[Plugin]) -> list[dict[str, Any]]:
    if not plugins:
        return []
    return [{"name": WHEELS_VOLUME, "emptyDir": {}}, {"name": SITE_VOLUME, "emptyDir": {}}]


def plugin_mounts(plugins: Sequence[Plugin]) -> list[dict[str, Any]]:
    """Of the engine container, which only reads."""
    return [{"name": SITE_VOLUME, "mountPath": SITE_MOUNT, "readOnly": True}] if plugins else []


def plugin_env(plugins: Sequence[Plugin]) -> list[dict[str, Any]]:
    """Of the engine container. VLLM_PLUGINS holds exactly the entry points that plugins name (all name some,
    or none does); unset, vLLM loads all that it finds."""
    if not plugins:
        return []
    env = [{"name": "PYTHONPATH", "value": ":".join(_target(index) for index in range(len(plugins)))}]
    named = [entry for plugin in plugins for entry in plugin.entry_points or ()]
    if named:
        env.append({"name": "VLLM_PLUGINS", "value": ",".join(dict.fromkeys(named))})
    return env


def plugin_init_containers(
    plugins: Sequence[Plugin], engine_image: str, security: dict[str, Any]
) -> list[dict[str, Any]]:
    """One that copies for each plugin image, then one that installs everything."""
    if not plugins:
        return []
    wheels = {"name": WHEELS_VOLUME, "mountPath": WHEELS_MOUNT}
    copies = [
        {
            "name": f"plugin-{index}",
            "image": plugin.image,
            "command": ["cp", "-R", f"{_path(plugin)}/.", _wheels(index)],
            "volumeMounts": [wheels],
            "securityContext": security,
        }
        for index, plugin in enumerate(plugins)
        if plugin.image
    ]
    sources = {_target(index): _source(index, plugin) for index, plugin in enumerate(plugins)}
    install = {
        "name": "install-plugins",
        "image": engine_image,
        "command": ["python3", "-c", INSTALLER],
        "env": [
            {"name": "BOWSPRIT_PLUGINS", "value": canonical_json(sources).replace("$", "$$")},
            {"name": "HOME", "value": "/tmp"},
        ],
        "volumeMounts": [{**wheels, "readOnly": True}, {"name": SITE_VOLUME, "mountPath": SITE_MOUNT}],
        "securityContext": security,
    }
    return [*copies, install]


def _source(index: int, plugin: Plugin) -> dict[str, Any]:
    if plugin.image:
        return {"image": plugin.image, "path": _path(plugin), "wheels": _wheels(index)}
    return {
        "requirement": plugin.requirement,
        "hashes": plugin.hashes or [],
        "index": plugin.index_url,
    }


def _path(plugin: Plugin) -> str:
    return (plugin.path or defaults.PLUGIN_PATH).rstrip("/")


def _wheels(index: int) -> str:
    return f"{WHEELS_MOUNT}/{index}"


def _target(index: int) -> str:
    return f"{SITE_MOUNT}/{index}"
