"""The engine image's own pip: what installs, and the `packaging` library inside it that reads wheels' names.

An image without pip usually has the wheel of it that Python's ensurepip carries; pip runs from there, and
nothing of the image is changed.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bowsprit_runtime import reasons
from bowsprit_runtime.report import Fault

_QUIET = ("--disable-pip-version-check", "--no-input", "--no-cache-dir")
_DISTRIBUTION_WHEELS = "/usr/share/python-wheels"
"""Where Debian keeps the wheels of ensurepip."""
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]+@")


def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`pip COMMAND …`, its output merged. Raises Fault when the image has no pip.

    Started by its path, because `-m pip` looks into the working directory first.
    """
    line = [sys.executable, f"{_location()}/pip", command, *_QUIET, *arguments]
    environ = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
    environ.pop("PIP_TARGET", None)
    environ.pop("PIP_USER", None)
    return subprocess.run(
        line,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def packaging(module: str) -> Any:
    """`packaging.MODULE` as pip brings it. Raises Fault when the image has no pip."""
    location = _location()
    if location not in sys.path:
        sys.path.append(location)
    return importlib.import_module(f"pip._vendor.packaging.{module}")


def errors(output: str) -> str:
    """What pip says was wrong, without credentials: its lines that begin with ERROR, else its last lines."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line[len("ERROR:") :].strip() for line in lines if line.startswith("ERROR:")]
    return without_credentials("; ".join(said or lines[-3:]))


def without_credentials(text: str) -> str:
    return _CREDENTIALS.sub("", text)


def own() -> str | None:
    """The folder of the image's own package `pip`."""
    spec = importlib.util.find_spec("pip")
    return str(Path(spec.origin).parent.parent) if spec and spec.origin else None


def wheel_folders() -> Sequence[Path]:
    """Where the wheels of ensurepip may lie."""
    ensurepip = importlib.util.find_spec("ensurepip")
    bundled = [Path(ensurepip.origin).parent / "_bundled"] if ensurepip and ensurepip.origin else []
    shared = [sysconfig.get_config_var("WHEEL_PKG_DIR"), _DISTRIBUTION_WHEELS]
    return [*bundled, *(Path(folder) for folder in shared if folder)]


def _location() -> str:
    """The folder or wheel that holds the package `pip`."""
    wheels = [str(wheel) for folder in wheel_folders() for wheel in sorted(folder.glob("pip-*.whl"))]
    location = own() or next(iter(wheels), None)
    if location is None:
        raise Fault(
            reasons.INSTALL_FAILED,
            "image",
            f"the engine image's Python ({sys.executable}) has no pip, and no ensurepip that carries one: "
            "add pip to the engine image.",
        )
    return location
