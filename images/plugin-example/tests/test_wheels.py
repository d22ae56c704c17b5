"""What an author ships: a wheel that any Python 3 takes, with the entry points that vLLM looks for."""

from __future__ import annotations

import configparser
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ENTRY_POINTS = {
    "my-opt": {
        "vllm.general_plugins": {"my_opt": "my_opt:register"},
        "vllm.model_architectures": {"my_opt_7438": "my_opt.proposal:MODEL_PLUGIN"},
    },
    "uneven-llama": {"vllm.general_plugins": {"uneven_llama": "uneven_llama:register"}},
}


@pytest.fixture(params=sorted(ENTRY_POINTS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_wheel_fits_every_python_and_platform(name: str, wheels: dict[str, Path]) -> None:
    assert wheels[name].name.endswith("-py3-none-any.whl")


def test_the_entry_points_are_in_the_groups_that_vllm_reads(name: str, wheels: dict[str, Path]) -> None:
    found = configparser.ConfigParser()
    with zipfile.ZipFile(wheels[name]) as wheel:
        (file,) = (member for member in wheel.namelist() if member.endswith(".dist-info/entry_points.txt"))
        found.read_string(wheel.read(file).decode())
    assert {section: dict(found[section]) for section in found.sections()} == ENTRY_POINTS[name]


def test_the_wheel_holds_the_package_and_nothing_beside_it(name: str, wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels[name]) as wheel:
        folders = {member.split("/")[0] for member in wheel.namelist()}
    module = name.replace("-", "_")
    assert folders == {module, f"bowsprit_{module}-1.0.0.dist-info"}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a plugin registers, with a vLLM that only takes notes."""
    notes: dict[str, Any] = {}
    vllm = ModuleType("vllm")
    vllm.ModelRegistry = type("ModelRegistry", (), {"register_model": staticmethod(notes.__setitem__)})
    config = ModuleType("vllm.model_executor.models.config")
    config.MODELS_CONFIG_MAP = {}
    hook = ModuleType("uneven_llama.hook")
    hook.UnevenLlamaConfig = object
    for module in (
        vllm,
        ModuleType("vllm.model_executor"),
        ModuleType("vllm.model_executor.models"),
        config,
        hook,
    ):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return notes


def test_the_class_is_named_and_not_imported(name: str, registered: dict[str, Any]) -> None:
    package = import_module(name.replace("-", "_"))
    package.register()
    package.register()  # vLLM may ask again
    ((architecture, implementation),) = registered.items()
    module, _, cls = implementation.partition(":")
    assert architecture == cls == package.ARCHITECTURE
    source = Path(package.__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    assert f"class {cls}(" in source.read_text(encoding="utf-8")
    assert module not in sys.modules
