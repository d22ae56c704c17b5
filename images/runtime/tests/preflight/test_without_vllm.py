"""The whole command on an engine in miniature: what can be wrong with an engine, exit codes, the report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight import command
from images.runtime.tests.preflight import judging, stub
from images.runtime.tests.preflight.case import package


def run(folder: Path, path: Path, *arguments: str, **request: Any) -> tuple[int, dict[str, Any]]:
    model = judging.model(folder / "model")
    settings = judging.environ([], [str(model), *arguments], **request)
    return judging.command(sys.executable, folder, {**settings, "PYTHONPATH": str(path)})


def faults(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault["reason"], fault["blame"]) for fault in report["faults"]]


def test_nothing_is_wrong(tmp_path: Path) -> None:
    code, report = run(tmp_path, stub.engine(tmp_path / "engine"))
    assert (code, report["verdict"], report["faults"]) == (0, "Ok", [])
    assert report["engine"]["vllm"] == "0.24.0"
    assert (report["facts"]["architecture"], report["facts"]["dtype"]) == ("LlamaForCausalLM", "bfloat16")


def test_an_engine_that_cannot_run_over_several_pods_is_too_old_for_stages(tmp_path: Path) -> None:
    code, report = run(tmp_path, stub.engine(tmp_path / "engine"), pipeline=2)
    assert (code, faults(report)) == (1, [(reasons.ENGINE_TOO_OLD, "image")])
    assert "vLLM 0.24.0 has no --nnodes" in report["faults"][0]["message"]


def test_an_image_without_vllm(tmp_path: Path) -> None:
    code, report = run(tmp_path, tmp_path)
    assert (code, faults(report)) == (1, [(reasons.ENGINE_MISSING, "image")])


def test_an_engine_that_is_broken_without_any_plugin(tmp_path: Path) -> None:
    engine = stub.engine(tmp_path / "engine", **{"vllm/engine/arg_utils.py": "import no_such_package\n"})
    code, report = run(tmp_path, engine)
    assert (code, faults(report)) == (1, [(reasons.ENGINE_IMPORT_FAILED, "image")])
    assert "No module named 'no_such_package' (vllm/engine/arg_utils.py:1)" in report["faults"][0][
        "message"
    ].replace(f"{engine}/", "")


def test_a_folder_called_vllm_in_the_working_directory_is_not_the_engine(
    tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "here" / "vllm").mkdir(parents=True)
    (tmp_path / "here" / "vllm" / "__init__.py").write_text("raise RuntimeError('not the engine')\n")
    monkeypatch.chdir(tmp_path / "here")
    assert run(tmp_path, stub.engine(tmp_path / "engine"))[0] == 0


def test_a_refused_argument_is_told_in_the_parsers_words(tmp_path: Path) -> None:
    code, report = run(tmp_path, stub.engine(tmp_path / "engine"), "--no-such-flag")
    assert (code, faults(report)) == (1, [(reasons.ARGUMENT_REFUSED, "spec")])
    assert report["faults"][0]["message"] == "vllm serve: unrecognized arguments: --no-such-flag"


def test_a_crash_of_the_judging_is_told_in_words_and_tried_again(tmp_path: Path) -> None:
    engine = stub.engine(
        tmp_path / "engine",
        **{"vllm/engine/arg_utils.py": "import os\nprint('gone', flush=True)\nos._exit(9)\n"},
    )
    report = tmp_path / "report"
    model = judging.model(tmp_path / "model")
    settings = {**judging.environ([], [str(model)]), "PYTHONPATH": str(engine)}
    assert judging.executed(sys.executable, report, settings) == 70
    assert report.read_text() == (
        "the process was ended with exit code 9 while importing vLLM; its last words: gone"
    )


def test_secrets_are_in_no_part_of_the_report(tmp_path: Path) -> None:
    source = "import os\nraise RuntimeError('cannot log in with ' + os.environ['MY_LOGIN'])\n"
    model = judging.model(tmp_path / "model")
    plugins = judging.installed(tmp_path, [package(source)])
    settings = {
        **judging.environ(plugins, [str(model)]),
        "PYTHONPATH": str(stub.engine(tmp_path / "engine")),
        "MY_LOGIN": "s3cr3t-0f-the-user",
    }
    code, report = judging.command(sys.executable, tmp_path, settings)
    assert (code, faults(report)) == (1, [(reasons.PLUGIN_IMPORT_FAILED, "plugin")])
    assert "cannot log in with [value of MY_LOGIN]" in report["faults"][0]["message"]
    assert "s3cr3t" not in json.dumps(report)


def test_preflight_that_is_ended_from_outside_leaves_words_so_that_nobody_is_told_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "judged", ended)
    report = tmp_path / "report"
    with pytest.raises(KeyboardInterrupt):
        command.main([str(report)])
    assert report.read_bytes() == command.UNFINISHED
