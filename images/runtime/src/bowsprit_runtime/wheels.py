"""Which wheels of a folder are installed: those for this Python and platform, one of each distribution.

A plugin image may hold wheels for several Pythons and CPU architectures, so that one image fits many engine
images; the best of them is taken, as an index would give it.
"""

from __future__ import annotations

import email.parser
import platform
import sysconfig
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from bowsprit_runtime import reasons
from bowsprit_runtime.engine_pip import packaging
from bowsprit_runtime.plugins import Plugin
from bowsprit_runtime.report import Fault

_SDISTS = (".tar.gz", ".tar.bz2", ".tgz", ".zip")


@dataclass(frozen=True)
class Wheel:
    file: Path
    name: str
    """Normalized."""
    version: str
    rank: int | None
    """How well its tags fit, 0 is best; None when they do not."""


def chosen(plugin: Plugin, folder: Path) -> tuple[list[Path], list[Fault]]:
    """The files to install from `folder`, and all that is wrong with what lies there."""
    files = sorted(folder.glob("*.whl"))
    if not files:
        return [], [_no_wheels(plugin, folder)]
    read = [_read(plugin, file) for file in files]
    wheels = [one for one in read if isinstance(one, Wheel)]
    best = [
        _best(plugin, [wheel for wheel in wheels if wheel.name == name])
        for name in sorted({wheel.name for wheel in wheels})
    ]
    faults = [one for one in (*read, *best) if isinstance(one, Fault)]
    return [one for one in best if isinstance(one, Path)], faults


def _read(plugin: Plugin, file: Path) -> Wheel | Fault:
    try:
        name, version, _, tags = packaging("utils").parse_wheel_filename(file.name)
    except ValueError as bad:
        return _unreadable(plugin, file, bad)
    ranks = [rank for rank, tag in enumerate(packaging("tags").sys_tags()) if tag in tags]
    return Wheel(file, str(name), str(version), ranks[0] if ranks else None)


def _best(plugin: Plugin, wheels: list[Wheel]) -> Path | Fault:
    """Of one distribution."""
    fitting = [wheel for wheel in wheels if wheel.rank is not None]
    if not fitting:
        text = (
            f"{_names(wheels)} of {plugin.source} cannot be installed by the engine image's "
            f"{_this_python()} on {sysconfig.get_platform()}."
        )
        return Fault(reasons.WHEEL_INCOMPATIBLE, "plugin", text)
    if len({wheel.version for wheel in fitting}) > 1:
        text = f"{plugin.source} holds several versions of one distribution: {_names(fitting)}. Keep one."
        return Fault(reasons.INSTALL_FAILED, "plugin", text)
    best = min(fitting, key=lambda wheel: wheel.rank or 0)
    try:
        wanted = _requires_python(best)
    except (ValueError, OSError, zipfile.BadZipFile) as bad:
        return _unreadable(plugin, best.file, bad)
    if wanted:
        text = (
            f"{best.file.name} of {plugin.source} wants Python {wanted}; the engine image has "
            f"{_this_python()}."
        )
        return Fault(reasons.REQUIRES_PYTHON, "plugin", text)
    return best.file


def _requires_python(wheel: Wheel) -> str:
    """The wheel's Requires-Python when this Python is not in it."""
    wanted = str(_metadata(wheel.file).get("Requires-Python") or "")
    allowed = packaging("specifiers").SpecifierSet(wanted)
    return "" if allowed.contains(platform.python_version(), prereleases=True) else wanted


def _metadata(file: Path) -> Message:
    with zipfile.ZipFile(file) as archive:
        entry = next((name for name in archive.namelist() if name.endswith(".dist-info/METADATA")), None)
        if entry is None:
            raise ValueError("it holds no METADATA")
        return email.parser.BytesHeaderParser().parsebytes(archive.read(entry))


def _unreadable(plugin: Plugin, file: Path, bad: Exception) -> Fault:
    text = f"{file.name} of {plugin.source} is no wheel that can be read ({bad}): build it again."
    return Fault(reasons.INSTALL_FAILED, "plugin", text)


def _no_wheels(plugin: Plugin, folder: Path) -> Fault:
    none = f"{plugin.source} holds no *.whl in {plugin.path}"
    deeper = sorted(folder.rglob("*.whl"))
    if deeper:
        there = f"{plugin.path}/{deeper[0].parent.relative_to(folder)}"
        return Fault(reasons.NO_WHEELS, "spec", f"{none}, but {len(deeper)} in {there}.")
    sources = sorted(file.name for file in folder.rglob("*") if file.name.endswith(_SDISTS))
    if sources:
        return Fault(reasons.SOURCE_ONLY, "plugin", f"{none}, only the source {sources[0]}.")
    return Fault(reasons.NO_WHEELS, "spec", f"{none}.")


def _names(wheels: Iterable[Wheel]) -> str:
    return " and ".join(wheel.file.name for wheel in wheels)


def _this_python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"
