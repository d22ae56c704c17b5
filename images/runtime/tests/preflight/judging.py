"""Real vLLM for tests: one engine process that judges many plugins, each in a fork, and the whole command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bowsprit_runtime.preflight import engine
from bowsprit_runtime.preflight.events import Judged
from bowsprit_runtime.report import Report
from images.runtime.tests import checkpoints, made

RUNTIME = Path(__file__).resolve().parents[2] / "src"
ZYGOTE = Path(__file__).with_name("zygote.py")

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
REGISTER = """
def register():
    from vllm import ModelRegistry
    ModelRegistry.register_model("MyLlama", "my_plugin.model:MyLlama")
"""
MODEL = """
from vllm.model_executor.models.llama import LlamaForCausalLM
class MyLlama(LlamaForCausalLM):
    pass
"""


@dataclass(frozen=True)
class Made:
    """A plugin to make a wheel of."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Path in the package my_plugin -> source; __init__.py registers model.py unless given."""
    entry_points: Mapping[str, str] = field(
        default_factory=lambda: {"vllm.general_plugins": "my_plugin = my_plugin:register"}
    )
    metadata: str = ""
    names: Sequence[str] = ()
    """The spec's entryPoints."""
    name: str = "my-plugin"
    raw: Mapping[str, str] = field(default_factory=dict)
    """Files outside of the package."""


def model(folder: Path, config: Any = CONFIG, weights: Mapping[str, bytes] = checkpoints.EMPTY) -> Path:
    """A model's folder; `weights` are files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (folder / "config.json").write_bytes(
            config if isinstance(config, bytes) else json.dumps(config).encode()
        )
    for name, content in weights.items():
        (folder / name).write_bytes(content)
    return folder


def installed(folder: Path, plugins: Sequence[Made]) -> list[dict[str, Any]]:
    """BOWSPRIT_PLUGINS of plugins that were made and unpacked under `folder`."""
    entries = []
    for index, plugin in enumerate(plugins):
        package = plugin.name.replace("-", "_")
        sources = {"__init__.py": REGISTER, "model.py": MODEL, **plugin.files}
        files = {f"{package}/{path}": text for path, text in sources.items()}
        wheel = made.wheel(
            folder / "wheels",
            plugin.name,
            files={**files, **plugin.raw},
            metadata=plugin.metadata,
            entry_points=plugin.entry_points,
        )
        target = made.unpacked(folder / "plugins" / str(index), wheel)
        entries.append(
            {
                "target": str(target),
                "image": f"registry/{plugin.name}:1",
                "path": "/plugins",
                "entryPoints": plugin.names,
            }
        )
    return entries


def environ(plugins: Sequence[Mapping[str, Any]], arguments: Sequence[str], **request: Any) -> dict[str, str]:
    """What the operator sets."""
    wanted = {"arguments": list(arguments), "tensors": [1], "timeLimitSeconds": 300, **request}
    return {"BOWSPRIT_PLUGINS": json.dumps(list(plugins)), "BOWSPRIT_PREFLIGHT": json.dumps(wanted)}


class Zygote:
    """An engine process that has imported vLLM."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def judge(
        self, folder: Path, plugins: Sequence[Made], arguments: Sequence[str], **request: Any
    ) -> Judged:
        """What the judging child tells; its output is in `folder`."""
        entries = installed(folder, plugins)
        names = [name for entry in entries for name in entry["entryPoints"]]
        environment = environ(entries, arguments, **request)
        if names:
            environment["VLLM_PLUGINS"] = ",".join([*names, engine.STAND_IN_NAME])
        events = folder / "events"
        asked = {
            "environ": environment,
            "targets": [entry["target"] for entry in entries],
            "events": str(events),
            "output": str(folder / "output"),
        }
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        status = int(self._process.stdout.readline())
        judged = Judged()
        judged.take(events.read_bytes().splitlines())
        assert status == 0, (folder / "output").read_text()
        assert judged.done
        return judged


def environment(python: str, **more: str) -> dict[str, str]:
    """Nothing of this process's Python; what a pod would have."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    return {**kept, "PATH": f"{Path(python).parent}:{os.environ['PATH']}", "VLLM_NO_USAGE_STATS": "1", **more}


@contextmanager
def zygote(python: str, scratch: Path, **more: str) -> Iterator[Zygote]:
    path = os.pathsep.join([str(RUNTIME), str(engine.STAND_IN), str(distribution(python, scratch))])
    with (scratch / "zygote.log").open("w") as log:
        process = subprocess.Popen(
            [python, str(ZYGOTE)],
            env=environment(python, PYTHONPATH=path, CUDA_VISIBLE_DEVICES="-1", **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdin
        assert process.stdout
        try:
            assert process.stdout.readline() == "ready\n", (scratch / "zygote.log").read_text()
            yield Zygote(process)
        finally:
            process.stdin.close()
            process.stdout.close()
            process.wait()


def distribution(python: str, scratch: Path) -> Path:
    """Where the runtime supplies a `vllm` distribution when the engine has none."""
    code = (
        "import pathlib, sys; from bowsprit_runtime import vllm_distribution as v;"
        "v.stand_in(pathlib.Path(sys.argv[1]))"
    )
    supplied = scratch / "distribution"
    supplied.mkdir(exist_ok=True)
    subprocess.run(
        [python, "-c", code, str(supplied)], env=environment(python, PYTHONPATH=str(RUNTIME)), check=True
    )
    return supplied


def executed(python: str, report: Path, settings: Mapping[str, str]) -> int:
    """The exit code of the whole command, as a pod runs it."""
    command = [python, str(RUNTIME), "preflight", str(report)]
    return subprocess.run(command, env=environment(python, **settings), check=False).returncode


def command(python: str, folder: Path, settings: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """(exit code, report)."""
    report = folder / "report.json"
    code = executed(python, report, settings)
    assert report.stat().st_size <= 4096
    return code, json.loads(report.read_bytes())


def verdicts(report: Report) -> tuple[str, list[tuple[str, str]]]:
    return report.verdict, [(fault.reason, fault.blame) for fault in report.faults]
