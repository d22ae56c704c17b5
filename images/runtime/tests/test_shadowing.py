"""A plugin must not bring what the engine image or another plugin has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.distributions import versions
from bowsprit_runtime.plugins import Plugin
from bowsprit_runtime.shadowing import of_each_other, of_the_engine
from images.runtime.tests.made import unpacked, wheel

Files = dict[str, dict[str, str]]
"""Distribution -> its files."""


def installed(tmp_path: Path, image: str, distributions: Files) -> Plugin:
    target = tmp_path / image
    made = [wheel(tmp_path / f"{image}-wheels", name, files=files) for name, files in distributions.items()]
    return Plugin(unpacked(target, *made), image=image)


AGAINST_THE_ENGINE: dict[str, tuple[Files, list[str]]] = {
    "names of its own": ({"my-opt": {"my_opt/__init__.py": ""}}, []),
    "a distribution of the engine": (
        {"my-opt": {"my_opt.py": ""}, "Torch": {"torch/__init__.py": ""}, "numpy": {"numpy/__init__.py": ""}},
        ["my brings numpy 1.0, torch 1.0; the engine image has numpy 2.1.0, torch 2.13.0."],
    ),
    "a package of the engine in another distribution": (
        {"torch-lite": {"torch/__init__.py": ""}},
        ["my brings the module `torch`, which would hide the engine image's own."],
    ),
    "a module of the engine's name": (
        {"my-opt": {"vllm.py": ""}},
        ["my brings the module `vllm`, which would hide the engine image's own."],
    ),
    "a namespace of the engine's name, which Python would not find": (
        {"my-opt": {"vllm/my_opt.py": ""}},
        ["my brings the module `vllm`, which would hide the engine image's own."],
    ),
    "a part of its own in a namespace of the engine": (
        {"nvidia-more": {"nvidia/more/__init__.py": ""}},
        [],
    ),
    "a part that the engine has, in a namespace": (
        {"nvidia-more": {"nvidia/cublas/__init__.py": ""}},
        ["my brings the module `nvidia.cublas`, which would hide the engine image's own."],
    ),
    "a module of the standard library": (
        {"my-opt": {"json/__init__.py": "", "time.py": ""}},
        ["my brings the module `json`, `time`, which would hide the engine image's own."],
    ),
    "a folder of data with the name of a package": ({"my-opt": {"vllm/model.json": "{}"}}, []),
}


@pytest.mark.parametrize("case", AGAINST_THE_ENGINE)
def test_against_the_engine(case: str, engine: Path, tmp_path: Path) -> None:
    distributions, messages = AGAINST_THE_ENGINE[case]
    plugin = installed(tmp_path, "my", distributions)
    path = [str(engine), str(Path(json.__file__).parent.parent)]
    faults = of_the_engine(plugin, path, versions(path))
    assert [fault.message for fault in faults] == messages
    assert all(fault.reason == reasons.SHADOWS_ENGINE for fault in faults)


AGAINST_EACH_OTHER: dict[str, tuple[Files, Files, list[str]]] = {
    "names of their own": ({"a": {"a.py": ""}}, {"b": {"b.py": ""}}, []),
    "the same package": (
        {"a": {"shared/__init__.py": ""}},
        {"b": {"shared/__init__.py": ""}},
        ["one and two both bring the module `shared`."],
    ),
    "a module and a package of one name": (
        {"a": {"shared.py": ""}},
        {"b": {"shared/__init__.py": ""}},
        ["one and two both bring the module `shared`."],
    ),
    "parts of one namespace": ({"a": {"space/a.py": ""}}, {"b": {"space/b.py": ""}}, []),
    "the same part of one namespace": (
        {"a": {"space/a.py": ""}},
        {"b": {"space/a.py": ""}},
        ["one and two both bring the module `space.a`."],
    ),
    "tests that were packaged by mistake": (
        {"a": {"tests/__init__.py": ""}},
        {"b": {"tests/__init__.py": ""}},
        [],
    ),
    "the same file of two wheels in one image": (
        {"a": {"shared.py": "A = 1"}, "b": {"shared.py": "A = 2"}},
        {},
        ["a and b of one both install shared.py."],
    ),
    "the same content of two wheels in one image": (
        {"a": {"space/__init__.py": ""}, "b": {"space/__init__.py": ""}},
        {},
        [],
    ),
}


@pytest.mark.parametrize("case", AGAINST_EACH_OTHER)
def test_against_each_other(case: str, tmp_path: Path) -> None:
    first, second, messages = AGAINST_EACH_OTHER[case]
    faults = of_each_other([installed(tmp_path, "one", first), installed(tmp_path, "two", second)])
    assert [fault.message for fault in faults] == messages
    assert all(fault.reason == reasons.PLUGINS_OVERLAP for fault in faults)
