"""Install, launch and liveness with real vLLM: two pods serve a plugin of the original proposal."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.distributions import RUNTIME
from e2e.models import tiny
from images.runtime.tests.made import wheel

pytestmark = pytest.mark.vllm

START_SECONDS = 600
MY_LLAMA = f"""
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.plugins.model_plugin import ModelPlugin

class MyLlama(LlamaForCausalLM):
    def compute_logits(self, *given, **named):
        logits = super().compute_logits(*given, **named)
        if logits is not None:
            logits[:, {tiny.AHOY_ID}] = 1e9
        return logits

MODEL_PLUGIN = ModelPlugin(architecture_name="MyLlama", implementation_cls=MyLlama)
"""


@pytest.fixture(scope="module")
def python() -> str:
    """The Python of an engine image."""
    named = os.environ.get("BOWSPRIT_VLLM_PYTHON")
    if not named:
        pytest.skip("BOWSPRIT_VLLM_PYTHON names no Python with vLLM; `make compat` builds some")
    return named


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """Of one pod: its own temporary folder, and plugin 0."""
    plugin = {
        "target": str(tmp_path / "site"),
        "image": "my-llama:1",
        "path": "/plugins",
        "wheels": str(tmp_path / "wheels"),
        "entryPoints": ["my_llama"],
    }
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "BOWSPRIT_PLUGINS": json.dumps([plugin]),
        "HF_HUB_OFFLINE": "1",
        "TORCHDYNAMO_DISABLE": "1",  # eager in earnest: the first request would compile C++
        "VLLM_CACHE_ROOT": str(tmp_path / "cache"),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_NO_USAGE_STATS": "1",
        **more,
    }


def run(python: str, command: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    line = [python, str(RUNTIME), command]
    return subprocess.run(line, env=environ, capture_output=True, text=True, check=False)


def test_a_plugin_that_brings_torch_or_code_into_vllm_is_refused(python: str, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "torch", "0.1", files={"torch/__init__.py": ""})
    wheel(tmp_path / "wheels", "patch", files={"vllm/model_executor/models/mine.py": ""})
    done = run(python, "install", environment(tmp_path))
    assert done.returncode == 1
    refused = [line for line in done.stdout.splitlines() if reasons.SHADOWS_ENGINE in line]
    assert "my-llama:1 brings torch 0.1; the engine image has torch " in refused[0]
    assert "my-llama:1 brings the module `vllm`" in refused[1]


def test_a_group_serves_a_plugin_of_the_original_proposal_and_lives_and_dies_with_its_head(
    python: str, tmp_path: Path
) -> None:
    model = tiny.write("llama", tmp_path / "model")
    wheel(
        tmp_path / "wheels",
        "my-llama",
        files={"my_llama.py": MY_LLAMA},
        metadata="Requires-Dist: vllm>=0.25\n",
        entry_points={"vllm.model_architectures": "my_llama = my_llama:MODEL_PLUGIN"},
    )
    done = run(python, "install", environment(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"bowsprit: {tmp_path}/site: my-llama 1.0 from my-llama:1\n"
    port, master = free_ports(2)
    arguments = [
        *(str(model), "--served-model-name", "m", "--port", str(port), "--master-port", str(master)),
        *("--tensor-parallel-size", "2", "--distributed-executor-backend", "mp", "--enforce-eager"),
        *("--max-model-len", "128", "--model-architecture-override", "MyLlama"),
    ]
    with ExitStack() as pods:
        head, worker = (pods.enter_context(pod(python, tmp_path, rank, arguments)) for rank in (0, 1))
        until_served(port, [head, worker])
        assert completion(port) == tiny.AHOY * 8
        environ = environment(tmp_path, TMPDIR=str(tmp_path / "1"))
        alive = run(python, "alive", environ)
        assert (alive.returncode, alive.stdout, alive.stderr) == (0, "", "")
        os.killpg(head.pid, 9)
        head.wait()
        lost = f"bowsprit: the head of the group no longer answers at localhost:{master}\n"
        assert eventually_dead(python, environ) == (1, lost)
        assert worker.poll() is None


def eventually_dead(python: str, environ: dict[str, str]) -> tuple[int, str]:
    """The first answer that is not alive: the processes of the head end one after the other."""
    for _ in range(300):
        answer = run(python, "alive", environ)
        if answer.returncode:
            break
    return answer.returncode, answer.stdout


@contextmanager
def pod(python: str, tmp_path: Path, rank: int, arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """One rank as LeaderWorkerSet starts it, in a process group of its own; its output goes to a file."""
    own = tmp_path / str(rank)
    own.mkdir()
    group = {"LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": str(rank), "LWS_LEADER_ADDRESS": "localhost"}
    environ = environment(tmp_path, TMPDIR=str(own), **group)
    with (own / "log").open("wb") as log:
        command = [python, str(RUNTIME), "launch", *arguments]
        started = subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True)
    try:
        yield started
    finally:
        if started.poll() is None:
            os.killpg(started.pid, 9)
            started.wait()
        print((own / "log").read_text(errors="replace")[-8000:])


def until_served(port: int, pods: list[subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert [each.poll() for each in pods] == [None, None]
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"not served after {START_SECONDS} s")


def completion(port: int) -> str:
    body = {"model": "m", "prompt": "hello there", "max_tokens": 8, "temperature": 0}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
        told: dict[str, Any] = json.load(answer)
    return str(told["choices"][0]["text"])


def free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        bound = [sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in bound]
