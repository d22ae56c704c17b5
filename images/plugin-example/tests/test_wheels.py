"""What an author ships: a wheel that any Python 3 takes, with the entry points that vLLM looks for."""

from __future__ import annotations

import configparser
import zipfile
from pathlib import Path

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
