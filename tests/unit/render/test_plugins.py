from __future__ import annotations

import json
from typing import Any

from bowsprit.api.v1alpha1 import Plugin
from bowsprit.render.plugins import plugin_env, plugin_init_containers, plugin_volumes

ENV: list[dict[str, Any]] = [{"name": "HOME", "value": "/tmp"}]


def plugin(**fields: Any) -> Plugin:
    return Plugin.model_validate(fields)


def sources(*plugins: Plugin) -> list[dict[str, Any]]:
    """BOWSPRIT_PLUGINS as the container finds it."""
    (variable,) = plugin_env(plugins)
    assert variable["name"] == "BOWSPRIT_PLUGINS"
    found: list[dict[str, Any]] = json.loads(variable["value"].replace("$$", "$"))
    return found


def test_a_model_without_plugins_has_nothing_of_them() -> None:
    assert (plugin_env(()), plugin_init_containers((), {}, "engine", ENV), plugin_volumes(())) == ([], [], [])


def test_plugins_are_told_in_order_of_installation_as_the_contract_says() -> None:
    digest = f"sha256:{'0' * 64}"
    told = sources(
        plugin(image="a", path="/w/", entryPoints=["one"]),
        plugin(requirement="b==1", hashes=[digest], indexURL="https://packages.example.com"),
        plugin(requirement="c==1"),
    )
    assert told == [
        {
            "target": "/opt/bowsprit/plugins/0",
            "image": "a",
            "path": "/w",
            "wheels": "/opt/bowsprit/wheels/0",
            "entryPoints": ["one"],
        },
        {
            "target": "/opt/bowsprit/plugins/1",
            "requirement": "b==1",
            "hashes": [digest],
            "index": "https://packages.example.com",
            "entryPoints": [],
        },
        {
            "target": "/opt/bowsprit/plugins/2",
            "requirement": "c==1",
            "hashes": [],
            "index": None,
            "entryPoints": [],
        },
    ]


def test_each_image_is_copied_from_by_a_program_of_the_runtime_and_the_engine_image_installs_all() -> None:
    plugins = [plugin(image="a", path="/w/"), plugin(requirement="b==1"), plugin(image="c")]
    first, third, install = plugin_init_containers(plugins, {}, "engine", ENV)
    copy = ["/opt/bowsprit/runtime/bin/busybox", "cp", "-R"]
    assert (first["name"], first["image"]) == ("plugin-0", "a")
    assert first["command"] == [*copy, "/w/.", "/opt/bowsprit/wheels/0"]
    assert (third["name"], third["image"]) == ("plugin-2", "c")
    assert third["command"] == [*copy, "/plugins/.", "/opt/bowsprit/wheels/2"]
    assert (install["image"], install["env"]) == ("engine", ENV)
    assert install["command"] == ["python3", "/opt/bowsprit/runtime", "install"]


def test_an_image_that_preflight_has_run_is_named_by_its_digest() -> None:
    plugins = [plugin(image="a:1"), plugin(image="b:1")]
    first, second, _ = plugin_init_containers(plugins, {"plugin-1": "b@sha256:0"}, "engine", ENV)
    assert (first["image"], second["image"]) == ("a:1", "b@sha256:0")
