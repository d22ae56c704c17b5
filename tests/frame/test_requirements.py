"""The pinned requirements say what pyproject.toml asks for, and nothing of the machine that pinned them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ASKED = {
    "runtime": PROJECT["project"]["dependencies"],
    "dev": PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"],
    "build": PROJECT["build-system"]["requires"],
}


def pins(name: str) -> dict[str, set[str]]:
    """Every pinned version by canonical name; one package may have a version for each Python."""
    text = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE):
        found.setdefault(canonicalize_name(package), set()).add(version)
    return found


@pytest.mark.parametrize("name", ASKED)
def test_each_requirement_of_the_project_is_pinned_within_its_bounds(name: str) -> None:
    pinned = pins(name)
    for requirement in map(Requirement, ASKED[name]):
        versions = pinned.get(canonicalize_name(requirement.name), set())
        fits = versions and all(requirement.specifier.contains(v, prereleases=True) for v in versions)
        assert fits, (
            f"{requirement} is pinned as {versions or 'nothing'} in {name}.txt: run `make requirements`"
        )


@pytest.mark.parametrize("name", ["runtime", "build"])
def test_dev_holds_what_the_image_is_made_of_at_the_same_versions(name: str) -> None:
    assert pins(name).items() <= pins("dev").items()


@pytest.mark.parametrize("name", ASKED)
def test_each_line_is_a_pin_or_a_hash_so_no_index_no_path_and_no_option_stands_there(name: str) -> None:
    pin = re.compile(r"[A-Za-z0-9._-]+==[^\s;]+( ; [\w .'<>=!-]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    lines = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not pin.fullmatch(line)] == []
