"""`python -m images.runtime.compat`: the runtime's tests with real vLLM, one engine after another.

Each engine is a venv in the cache, named by its requirements. The stock build for CUDA is among them:
preflight has to work in it on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
UV = "uv==0.13.9"

ENGINES = {
    "0.25.1": HERE / "engine-0.25.1.txt",
    "0.28.0": HERE / "engine-0.28.0.txt",
    "0.32.0": ROOT / "e2e" / "engine" / "requirements.txt",
    "0.33.0": HERE / "engine-0.33.0.txt",
}
"""Version of vLLM -> its requirements; the last is the build for CUDA, the others are for CPUs."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bowsprit" / "compat"


def python_of(version: str) -> Path:
    """The Python of an engine, which is installed when the cache does not hold it."""
    requirements = ENGINES[version]
    digest = hashlib.sha256(requirements.read_bytes() + f"{UV} {sys.version}".encode()).hexdigest()[:12]
    folder = cache() / f"{version}-{digest}"
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            for other in cache().glob(f"{version}-*"):  # of other requirements, or cut off
                shutil.rmtree(other)
            _install(folder, requirements)
            (folder / "complete").touch()
    return folder / "bin" / "python"


def _install(folder: Path, requirements: Path) -> None:
    began = time.monotonic()
    _show(f"installing {requirements.name} into {folder} …")
    _run(sys.executable, "-m", "venv", str(folder))
    tools = folder / "tools"
    _run(sys.executable, "-m", "venv", str(tools))
    _run(f"{tools}/bin/pip", "install", "--quiet", "--disable-pip-version-check", UV)
    install = (
        "uv",
        "pip",
        "install",
        "--quiet",
        "--no-config",
        "--no-cache",
        "--require-hashes",
        "--no-deps",
    )
    python = ("--python", f"{folder}/bin/python", "--only-binary", ":all:")
    _run("nice", f"{tools}/bin/{install[0]}", *install[1:], *python, "--requirement", str(requirements))
    shutil.rmtree(tools)
    _show(f"installed in {time.monotonic() - began:.0f} s")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def tried(version: str, arguments: list[str]) -> int:
    """pytest's exit code for the tests that need an engine."""
    environ = {**os.environ, "BOWSPRIT_VLLM_PYTHON": str(python_of(version))}
    command = [sys.executable, "-m", "pytest", "-m", "vllm", "images/runtime/tests", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m images.runtime.compat", description=__doc__)
    parser.add_argument(
        "--engine", action="append", choices=ENGINES, help="only this version; may be repeated"
    )
    parser.add_argument("--install", action="store_true", help="install the engines and run nothing")
    known, arguments = parser.parse_known_args()
    versions = known.engine or list(ENGINES)
    if known.install:
        for version in versions:
            _show(str(python_of(version)))
        return 0
    codes = {version: tried(version, arguments) for version in versions}
    for version, code in codes.items():
        _show(f"vLLM {version}: {'passed' if code == 0 else f'failed (pytest {code})'}")
    return max(codes.values())


def _show(line: str) -> None:
    print(f"compat: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
