"""Which wheels of a plugin image are installed, and what is said of those that cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.plugins import Plugin
from bowsprit_runtime.wheels import chosen
from images.runtime.tests.made import wheel

THIS = f"py{sys.version_info.major}{sys.version_info.minor}"


def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path / "site", image="registry/my-opt:1", path="/plugins", wheels=tmp_path / "wheels")


def names(tmp_path: Path) -> list[str]:
    files, faults = chosen(plugin(tmp_path), tmp_path / "wheels")
    assert faults == []
    return [file.name for file in files]


def test_every_distribution_of_the_image_is_taken(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "my-opt")
    wheel(tmp_path / "wheels", "helper", "2.0")
    assert names(tmp_path) == ["helper-2.0-py3-none-any.whl", "my_opt-1.0-py3-none-any.whl"]


def test_of_wheels_for_several_pythons_and_platforms_the_best_one_is_taken(tmp_path: Path) -> None:
    for tag in ("cp27-none-any", f"{THIS}-none-any", "py3-none-any", "cp39-cp39-win_amd64"):
        wheel(tmp_path / "wheels", "my-opt", tag=tag)
    assert names(tmp_path) == [f"my_opt-1.0-{THIS}-none-any.whl"]


CANNOT = "cannot be installed by the engine image's CPython 3."
REFUSED: dict[str, tuple[list[tuple[str, str, str]], str, str, str]] = {
    "a wheel for another Python": (
        [("1.0", "cp27-none-any", "")],
        reasons.WHEEL_INCOMPATIBLE,
        "plugin",
        f"my_opt-1.0-cp27-none-any.whl of registry/my-opt:1 {CANNOT}",
    ),
    "wheels for other platforms only": (
        [("1.0", "py3-none-win_amd64", ""), ("1.0", "py3-none-win32", "")],
        reasons.WHEEL_INCOMPATIBLE,
        "plugin",
        "my_opt-1.0-py3-none-win32.whl and my_opt-1.0-py3-none-win_amd64.whl of registry/my-opt:1 " + CANNOT,
    ),
    "Requires-Python leaves this Python out": (
        [("1.0", "py3-none-any", "Requires-Python: <3.9\n")],
        reasons.REQUIRES_PYTHON,
        "plugin",
        "my_opt-1.0-py3-none-any.whl of registry/my-opt:1 wants Python <3.9; the engine image has CPython 3.",
    ),
    "two versions of one distribution": (
        [("1.0", "py3-none-any", ""), ("2.0", "py3-none-any", "")],
        reasons.INSTALL_FAILED,
        "plugin",
        "registry/my-opt:1 holds several versions of one distribution: my_opt-1.0-py3-none-any.whl and my_",
    ),
    "no wheel at all": (
        [],
        reasons.NO_WHEELS,
        "spec",
        "registry/my-opt:1 holds no *.whl in /plugins.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, tmp_path: Path) -> None:
    made, reason, blame, words = REFUSED[case]
    (tmp_path / "wheels").mkdir()
    for version, tag, metadata in made:
        wheel(tmp_path / "wheels", "my-opt", version, tag=tag, metadata=metadata)
    files, (fault,) = chosen(plugin(tmp_path), tmp_path / "wheels")
    assert files == []
    assert (fault.reason, fault.blame) == (reason, blame)
    assert fault.message.startswith(words)


STRANGE: dict[str, tuple[str, bytes, str, str]] = {
    "wheels in a folder below": (
        "dist/my_opt-1.0-py3-none-any.whl",
        b"",
        reasons.NO_WHEELS,
        "registry/my-opt:1 holds no *.whl in /plugins, but 1 in /plugins/dist.",
    ),
    "source only": (
        "my_opt-1.0.tar.gz",
        b"",
        reasons.SOURCE_ONLY,
        "registry/my-opt:1 holds no *.whl in /plugins, only the source my_opt-1.0.tar.gz.",
    ),
    "a file that is no zip": (
        "my_opt-1.0-py3-none-any.whl",
        b"garbage",
        reasons.INSTALL_FAILED,
        "my_opt-1.0-py3-none-any.whl of registry/my-opt:1 is no wheel that can be read",
    ),
    "a name that is none of a wheel": (
        "my_opt.whl",
        b"",
        reasons.INSTALL_FAILED,
        "my_opt.whl of registry/my-opt:1 is no wheel that can be read",
    ),
}


@pytest.mark.parametrize("case", STRANGE)
def test_what_lies_there_is_said(case: str, tmp_path: Path) -> None:
    name, content, reason, words = STRANGE[case]
    file = tmp_path / "wheels" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    files, (fault,) = chosen(plugin(tmp_path), tmp_path / "wheels")
    assert (files, fault.reason) == ([], reason)
    assert fault.message.startswith(words)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "one", tag="cp27-none-any")
    wheel(tmp_path / "wheels", "two", metadata="Requires-Python: <3\n")
    _, faults = chosen(plugin(tmp_path), tmp_path / "wheels")
    assert [fault.reason for fault in faults] == [reasons.WHEEL_INCOMPATIBLE, reasons.REQUIRES_PYTHON]
