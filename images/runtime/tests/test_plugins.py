"""BOWSPRIT_PLUGINS is read as decision 0012 writes it."""

from __future__ import annotations

import json
from pathlib import Path

from bowsprit_runtime.plugins import Plugin, plugins_of

IMAGE = {
    "target": "/opt/bowsprit/plugins/0",
    "image": "registry/my-opt:1",
    "path": "/plugins",
    "wheels": "/opt/bowsprit/wheels/0",
    "entryPoints": ["my_opt"],
}
REQUIREMENT = {
    "target": "/opt/bowsprit/plugins/1",
    "requirement": "my-opt==1.0",
    "hashes": ["sha256:0"],
    "index": None,
    "entryPoints": None,
}


def test_both_kinds_in_the_order_of_installation() -> None:
    first, second = plugins_of({"BOWSPRIT_PLUGINS": json.dumps([IMAGE, REQUIREMENT])})
    assert first == Plugin(
        target=Path("/opt/bowsprit/plugins/0"),
        entry_points=("my_opt",),
        image="registry/my-opt:1",
        path="/plugins",
        wheels=Path("/opt/bowsprit/wheels/0"),
    )
    assert second == Plugin(
        target=Path("/opt/bowsprit/plugins/1"), requirement="my-opt==1.0", hashes=("sha256:0",)
    )
    assert [first.source, second.source] == ["registry/my-opt:1", "my-opt==1.0"]


def test_a_model_without_plugins_has_none() -> None:
    assert plugins_of({}) == plugins_of({"BOWSPRIT_PLUGINS": ""}) == []
