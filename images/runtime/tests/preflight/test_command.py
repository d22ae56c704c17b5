"""The whole command, as a pod runs it: what a plugin does to the process, and what is never told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime import reasons
from e2e.models import tiny
from images.runtime.tests.preflight import judging
from images.runtime.tests.preflight.case import MY_LLAMA, package
from images.runtime.tests.preflight.judging import Made

pytestmark = pytest.mark.vllm

SECRET = "s3cr3t-0f-the-user"


def run(
    python: str, folder: Path, *plugins: Made, settings: dict[str, str] | None = None, **request: Any
) -> tuple[int, dict[str, Any]]:
    model = judging.model(folder / "model")
    arguments = [str(model), "--skip-tokenizer-init", *MY_LLAMA]
    environ = judging.environ(judging.installed(folder, plugins), arguments, **request)
    return judging.command(python, folder, {**environ, **(settings or {})})


def faults(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault["reason"], fault["blame"]) for fault in report["faults"]]


def test_a_good_plugin_is_reported_with_all_facts(python: str, tmp_path: Path) -> None:
    code, report = run(python, tmp_path, Made(), tensors=[1, 2])
    assert (code, report["verdict"], report["faults"]) == (0, "Ok", [])
    assert report["plugins"] == [
        {
            "name": "my-plugin",
            "version": "1.0",
            "entryPoints": ["my_plugin"],
            "architectures": ["MyLlama"],
            "more": 0,
        }
    ]
    facts = report["facts"]
    assert (facts["architecture"], facts["supportsPP"], facts["maxModelLen"]) == ("MyLlama", True, 2048)
    assert (facts["dtype"], facts["quantization"]) == ("bfloat16", None)
    one, two = facts["weights"]["1"], facts["weights"]["2"]
    assert one["embedding"] == one["head"] == 1024 * 256 * 2
    weights = (256 * 256 * 2 + 256 * 128 * 2 + 256 * 512 * 3 + 2 * 256) * 2
    ((count, size),) = one["layers"]
    assert count == 4
    assert weights <= size < weights + 256  # the scales of quantized caches come on top
    assert two["embedding"] == one["embedding"] // 2


def test_the_headers_of_the_weights_say_what_the_engine_will_hold(python: str, tmp_path: Path) -> None:
    """A checkpoint of float32, served in 16 bits: what the class holds besides are small tables."""
    model = tiny.write("llama", tmp_path / "model")
    settings = judging.environ([], [str(model), "--skip-tokenizer-init", "--dtype", "bfloat16"])
    code, report = judging.command(python, tmp_path, settings)
    assert (code, report["verdict"]) == (0, "Ok")
    built, held = report["facts"]["weights"]["1"], report["facts"]["checkpoint"]
    assert (held["embedding"], held["head"]) == (built["embedding"], built["head"])
    (((count, size),), ((layers, most),)) = held["layers"], built["layers"]
    assert count == layers == tiny.LAYERS
    assert size <= most < size + 256
    assert held["other"] == tiny.HIDDEN * 2, "the norm before the head"


def test_the_class_is_imported_in_one_process_only(python: str, tmp_path: Path) -> None:
    """vLLM would inspect a class that is registered by name in a second process, for half a minute."""
    seen = tmp_path / "seen"
    source = f"import os\nwith open({str(seen)!r}, 'a') as file:\n    print(os.getpid(), file=file)\n"
    run(python, tmp_path, Made({"model.py": source + judging.MODEL}))
    assert len(seen.read_text().split()) == 1


def test_a_plugin_that_hangs_is_stopped_and_its_line_named(python: str, tmp_path: Path) -> None:
    code, report = run(
        python,
        tmp_path,
        package("import threading\nthreading.Event().wait()\n"),
        timeLimitSeconds=TIME_LIMIT,
    )
    assert (code, faults(report)) == (1, [(reasons.PLUGIN_TIMED_OUT, "plugin")])
    assert "importing my-plugin: my_plugin = my_plugin:register" in report["faults"][0]["message"]
    assert "my_plugin/__init__.py:2" in report["faults"][0]["message"]


def test_a_plugin_that_ends_the_process_does_not_end_the_report(python: str, tmp_path: Path) -> None:
    code, report = run(python, tmp_path, package("import os, sys\nprint('bye', flush=True)\nos._exit(0)\n"))
    assert (code, faults(report)) == (1, [(reasons.PLUGIN_EXITED, "plugin")])
    assert "ended with exit code 0 while importing my-plugin" in report["faults"][0]["message"]
    assert "bye" in report["faults"][0]["message"]


def test_a_plugin_that_allocates_without_end_is_stopped_before_the_container_is(
    python: str, tmp_path: Path
) -> None:
    source = "kept = []\nwhile True:\n    kept.append(bytearray(b'x') * (8 << 20))\n"
    code, report = run(python, tmp_path, package(source), memoryLimitBytes=4 << 30)
    assert (code, faults(report)) == (1, [(reasons.PLUGIN_OUT_OF_MEMORY, "plugin")])
    assert "GiB of the 4.0 GiB that the container may use" in report["faults"][0]["message"]


def test_secrets_of_the_environment_are_not_told(python: str, tmp_path: Path) -> None:
    source = (
        "import os\nprint(os.environ)\nraise RuntimeError('cannot log in with ' + os.environ['MY_LOGIN'])\n"
    )
    code, report = run(python, tmp_path, package(source), settings={"MY_LOGIN": SECRET})
    assert (code, faults(report)) == (1, [(reasons.PLUGIN_IMPORT_FAILED, "plugin")])
    assert "cannot log in with [value of MY_LOGIN]" in report["faults"][0]["message"]
    assert SECRET not in json.dumps(report)


def test_two_platform_plugins_exclude_each_other(python: str, tmp_path: Path) -> None:
    entry = "def platform():\n    return 'vllm.platforms.cpu.CpuPlatform'\n"
    made = [
        Made(
            {"__init__.py": entry}, {"vllm.platform_plugins": f"{name}_platform = {name}:platform"}, name=name
        )
        for name in ("first", "second")
    ]
    code, report = run(python, tmp_path, *made)
    assert (code, faults(report)) == (1, [(reasons.PLATFORM_CONFLICT, "plugin")])
    assert "Only one platform plugin can be activated" in report["faults"][0]["message"]


def test_a_plugin_that_hides_a_part_of_the_engine_is_named(python: str, tmp_path: Path) -> None:
    """Its copy of a package that vLLM needs comes first on the path."""
    code, report = run(
        python, tmp_path, Made(raw={"pydantic/__init__.py": "from nowhere import everything\n"})
    )
    assert (code, faults(report)) == (1, [(reasons.ENGINE_BROKEN_BY_PLUGIN, "plugin")])
    assert "vLLM can be imported without my-plugin" in report["faults"][0]["message"]
    assert "pydantic/__init__.py:1" in report["faults"][0]["message"]


TIME_LIMIT = 120
"""Seconds: several times what the import of vLLM takes, since the step must be the plugin's."""
