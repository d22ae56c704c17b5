"""Plugins of vLLM pull request 7438, unchanged in their packaging, in a vLLM that never took it in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bowsprit_runtime.distributions import RUNTIME
from images.runtime.tests.made import unpacked, wheel

VLLM = {
    "torch/__init__.py": "class nn:\n    class Module: pass\n",
    "vllm/__init__.py": """
class ModelRegistry:
    known = {}
    @classmethod
    def register_model(cls, name, implementation):
        cls.known[name] = getattr(implementation, "__name__", implementation)
""",
    # As in vLLM: all plugins of a group are imported before the first of them is called, and what cannot be
    # imported is only told.
    "vllm/plugins/__init__.py": """
import os
from importlib.metadata import entry_points
def load_plugins_by_group(group):
    allowed, found = os.environ.get("VLLM_PLUGINS"), {}
    for entry in entry_points(group=group):
        if allowed is None or entry.name in allowed.split(","):
            try:
                found[entry.name] = entry.load()
            except Exception as error:
                print(f"Failed to load plugin {entry.name}: {error}")
    return found
""",
}
LOAD = """
from vllm.plugins import load_plugins_by_group
from vllm import ModelRegistry
for _ in range(2):
    for function in load_plugins_by_group("vllm.general_plugins").values():
        function()
print(ModelRegistry.known)
"""
MY_OPT = """
from vllm.plugins.model_plugin import ModelArchitectureBase, ModelPlugin
class MyOpt(ModelArchitectureBase): pass
MODEL_PLUGIN = ModelPlugin(architecture_name="OPTForCausalLM", implementation_cls=MyOpt)
LAZY = ModelPlugin("LazyForCausalLM", "my_opt:MyOpt")
def register(): pass
"""
GROUP = "vllm.model_architectures"


def loaded(tmp_path: Path, entry_points: dict[str, str], text: str = MY_OPT, **environ: str) -> str:
    """What vLLM's registry holds after all plugins were loaded twice; else the error."""
    engine = unpacked(tmp_path / "engine", wheel(tmp_path / "w", "vllm", "0.32.0", files=VLLM))
    plugin = wheel(tmp_path / "w", "my-opt", files={"my_opt.py": text}, entry_points=entry_points)
    target = unpacked(tmp_path / "site", plugin)
    path = os.pathsep.join([str(RUNTIME), str(target), str(engine)])
    given = {**os.environ, "PYTHONPATH": path, **environ}
    command = [sys.executable, "-c", LOAD]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


LOADED: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "the object of the proposal": (
        {GROUP: "my_opt = my_opt:MODEL_PLUGIN"},
        {},
        "{'OPTForCausalLM': 'MyOpt'}",
    ),
    "together with an ordinary plugin in the same module": (
        {GROUP: "my_opt = my_opt:MODEL_PLUGIN", "vllm.general_plugins": "my_opt = my_opt:register"},
        {},
        "{'OPTForCausalLM': 'MyOpt'}",
    ),
    "a class by its name, imported when it is needed": (
        {GROUP: "lazy = my_opt:LAZY"},
        {},
        "{'LazyForCausalLM': 'my_opt:MyOpt'}",
    ),
    "named in VLLM_PLUGINS": (
        {GROUP: "a = my_opt:MODEL_PLUGIN\nb = my_opt:LAZY"},
        {"VLLM_PLUGINS": "b,bowsprit_model_architectures"},
        "{'LazyForCausalLM': 'my_opt:MyOpt'}",
    ),
    "no plugin of that kind": ({}, {}, "{}"),
    "something that is no ModelPlugin": (
        {GROUP: "my_opt = my_opt:register"},
        {},
        "not a ModelPlugin(architecture_name=…, implementation_cls=…)",
    ),
    "two plugins for one architecture": (
        {GROUP: "a = my_opt:MODEL_PLUGIN\nb = my_opt:MODEL_PLUGIN"},
        {},
        "both bring OPTForCausalLM: name one of them in plugins[].entryPoints",
    ),
}


@pytest.mark.parametrize("case", LOADED)
def test_what_vllm_knows_in_the_end(case: str, tmp_path: Path) -> None:
    entry_points, environ, known = LOADED[case]
    assert loaded(tmp_path, entry_points, **environ).endswith(known)


def test_a_vllm_that_has_the_module_keeps_its_own(tmp_path: Path) -> None:
    own = "class ModelPlugin:\n    architecture_name, implementation_cls = 'Own', 'vllm:Own'\n"
    unpacked(
        tmp_path / "engine",
        wheel(tmp_path / "o", "newer", files={"vllm/plugins/model_plugin.py": own}),
    )
    text = "from vllm.plugins.model_plugin import ModelPlugin\nMODEL_PLUGIN = ModelPlugin()\n"
    assert loaded(tmp_path, {GROUP: "my_opt = my_opt:MODEL_PLUGIN"}, text) == "{'Own': 'vllm:Own'}"


def test_a_plugin_that_cannot_be_imported_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    groups = {GROUP: "my_opt = my_opt:MODEL_PLUGIN\nbroken = my_opt:ABSENT"}
    assert loaded(tmp_path, groups) == "{'OPTForCausalLM': 'MyOpt'}"
