"""Wheels and engines for tests: a wheel is a zip, and an engine is a folder with a few distributions."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    files: Mapping[str, str] | None = None,
    metadata: str = "",
    entry_points: Mapping[str, str] | None = None,
    tag: str = "py3-none-any",
) -> Path:
    """Writes NAME-VERSION-TAG.whl into `folder`.

    `files` are path -> text (default: one module of the wheel's name); `metadata` further lines of METADATA;
    `entry_points` group -> "name = module:attribute" lines.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    contents = dict(files if files is not None else {f"{stem}.py": f"NAME = {name!r}\n"})
    contents[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}"
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
    if entry_points:
        groups = (f"[{group}]\n{lines}\n" for group, lines in entry_points.items())
        contents[f"{info}/entry_points.txt"] = "\n".join(groups)
    rows = [f"{path},{_digest(text)},{len(text.encode())}" for path, text in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    file = folder / f"{stem}-{version}-{tag}.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in contents.items():
            archive.writestr(zipfile.ZipInfo(path), text)  # without the time: the same bytes each time
    return file


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def unpacked(target: Path, *wheels: Path) -> Path:
    """`target`, as pip would leave it."""
    target.mkdir(parents=True, exist_ok=True)
    for file in wheels:
        with zipfile.ZipFile(file) as archive:
            archive.extractall(target)
    return target


ENGINE = {"vllm": "0.32.0", "torch": "2.13.0", "numpy": "2.1.0"}
"""Distributions of the engine that `engine` makes."""


def engine(folder: Path, **more: str) -> Path:
    """A folder with the distributions of an engine image, each one package of its name, and a namespace."""
    scratch = folder.with_name(f"{folder.name}-wheels")
    made = [
        wheel(scratch, name, version, files={f"{name}/__init__.py": ""})
        for name, version in {**ENGINE, **more}.items()
    ]
    made.append(wheel(scratch, "nvidia-cublas", files={"nvidia/cublas/__init__.py": ""}))
    return unpacked(folder, *made)
