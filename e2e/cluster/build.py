"""Builds the control plane's programs from their Go modules, once, into a cache outside the work tree.

A cache folder is named by what went into it, so a changed go.mod, go.sum, program list, flag or Go version
builds anew and an unchanged one costs nothing. Manifests that a start needs are kept beside the programs,
so a machine with a filled cache needs no Go. A folder appears under its name by one rename, when complete:
a killed build leaves nothing broken.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.processes import ProcessGroup, tail
from e2e.cluster.programs import CONTROL_PLANE, ProgramSet

# -mod=readonly: go.sum decides, a build never edits it. nice: a build takes minutes, others work here.
GO_BUILD = ("nice", "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false")
ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}
# Between two progress lines where the output is no terminal and a line cannot be overwritten.
PROGRESS_SECONDS = 30.0


class BuildFailed(Exception):
    """The programs could not be built; the message says why and what to do."""


@dataclass(frozen=True)
class Programs:
    """The finished programs and manifests."""

    folders: Mapping[str, Path]
    """Program set name -> its folder in the cache."""

    def binary(self, program: str) -> str:
        """The path of a program."""
        paths = (folder / "bin" / program for folder in self.folders.values())
        return next(str(path) for path in paths if path.exists())

    def manifest(self, program_set: ProgramSet, path: str) -> Path:
        """A file that the module of `program_set` ships."""
        return self.folders[program_set.name] / "manifests" / path


def cache_directory() -> Path:
    """Where programs are kept: outside the work tree, so a fresh clone finds them."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bowsprit" / "programs"


def ensure_programs(program_sets: Sequence[ProgramSet] = CONTROL_PLANE) -> Programs:
    """The programs, built first where the cache does not hold them yet."""
    missing = [s for s in program_sets if _cached(s) is None]
    if missing:
        with _build_lock():
            _build_all([s for s in missing if _cached(s) is None])
    folders = {s.name: _cached(s) for s in program_sets}
    return Programs({name: folder for name, folder in folders.items() if folder is not None})


def are_built(program_sets: Sequence[ProgramSet]) -> bool:
    """Whether `ensure_programs` would have nothing to build."""
    return all(_cached(program_set) is not None for program_set in program_sets)


def _build_all(missing: list[ProgramSet]) -> None:
    version = _go_version()
    if version is None:
        names = ", ".join(program for s in missing for program in s.programs)
        raise BuildFailed(
            f"{names} must be built, and there is no `go` on the PATH. Install Go 1.26 or later and run\n"
            "  python -m e2e.cluster build"
        )
    total = sum(len(s.programs) for s in missing)
    group = ProcessGroup()
    try:
        number = 1
        for program_set in missing:
            _build_set(program_set, _folder(program_set, version), group, number, total)
            number += len(program_set.programs)
    finally:
        group.kill()


def _build_set(
    program_set: ProgramSet, destination: Path, group: ProcessGroup, number: int, total: int
) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=cache_directory()))
    try:
        for offset, (program, package) in enumerate(program_set.programs.items()):
            command = [
                *GO_BUILD,
                "-ldflags",
                _linker_flags(program_set),
                "-o",
                str(unfinished / "bin" / program),
            ]
            title = f"{program} ({number + offset} of {total})"
            _run([*command, package], program_set.directory, group, title)
        if program_set.manifests:
            _copy_manifests(program_set, unfinished / "manifests")
        unfinished.rename(destination)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _run(command: list[str], directory: Path, group: ProcessGroup, title: str) -> None:
    """Runs one build with its progress shown; its output is kept only when it fails."""
    log = cache_directory() / "build.log"
    log.write_bytes(b"")
    began = time.monotonic()
    process = group.start(command, log, ENVIRONMENT, cwd=directory)
    shown = began - PROGRESS_SECONDS
    while process.poll() is None:
        now = time.monotonic()
        if sys.stderr.isatty() or now - shown >= PROGRESS_SECONDS:
            _show(f"building {title} ... {now - began:.0f} s", end="\r" if sys.stderr.isatty() else "\n")
            shown = now
        time.sleep(0.2)
    if process.returncode != 0:
        raise BuildFailed(f"building {title} failed with exit code {process.returncode}.\n{tail(log)}")
    _show(f"built {title} in {time.monotonic() - began:.0f} s     ")


def _copy_manifests(program_set: ProgramSet, destination: Path) -> None:
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", program_set.module]
    environment = {**os.environ, **ENVIRONMENT}
    listed = subprocess.run(
        command, cwd=program_set.directory, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    module = Path(listed.stdout.strip())
    for path in program_set.manifests:
        target = destination / path
        target.parent.mkdir(parents=True, exist_ok=True)
        # Not shutil.copy: the module cache is read-only, and the copy must be removable.
        target.write_bytes((module / path).read_bytes())


def _linker_flags(program_set: ProgramSet) -> str:
    version = program_set.version
    values = (v.format(version=version, minor=version.split(".")[1]) for v in program_set.version_variables)
    return " ".join(["-s -w", *(f"-X {value}" for value in values)])


def _cached(program_set: ProgramSet) -> Path | None:
    """The finished folder of a program set; on a machine without Go, one that any Go has built."""
    version = _go_version()
    if version is not None:
        folder = _folder(program_set, version)
        return folder if folder.is_dir() else None
    return next(iter(cache_directory().glob(_folder(program_set, "*").name)), None)


def _folder(program_set: ProgramSet, go_version: str) -> Path:
    digest = hashlib.sha256()
    sources = sorted(program_set.directory.glob("*.go"))
    for path in (program_set.directory / "go.mod", program_set.directory / "go.sum", *sources):
        digest.update(path.read_bytes())
    inputs = (
        dict(program_set.programs),
        program_set.manifests,
        GO_BUILD,
        ENVIRONMENT,
        _linker_flags(program_set),
    )
    digest.update(repr(inputs).encode())
    return cache_directory() / f"{program_set.name}-{digest.hexdigest()[:16]}-{go_version}"


@functools.cache
def _go_version() -> str | None:
    if shutil.which("go") is None:
        return None
    command = ["go", "env", "GOVERSION", "GOOS", "GOARCH"]
    answer = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, cwd=CONTROL_PLANE[0].directory
    )
    return "-".join(answer.stdout.split())


@contextmanager
def _build_lock() -> Iterator[None]:
    """One build at a time on a machine: two would only take the processors from each other."""
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("a+") as lock:
        began = shown = time.monotonic()
        while not _locked(lock.fileno()):
            now = time.monotonic()
            if now - shown >= PROGRESS_SECONDS:
                _show(f"waiting for another build of the same programs ... {now - began:.0f} s")
                shown = now
            time.sleep(0.2)
        for leftover in directory.glob("unfinished-*"):  # of a build that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _show(line: str, end: str = "\n") -> None:
    print(line, end=end, file=sys.stderr, flush=True)
