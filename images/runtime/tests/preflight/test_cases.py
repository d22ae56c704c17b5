"""Every behaviour of plugins and models that we know, judged by real vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from images.runtime.tests.preflight import judging
from images.runtime.tests.preflight.broken_cases import BROKEN, HUB
from images.runtime.tests.preflight.case import Case
from images.runtime.tests.preflight.judging import Zygote, verdicts
from images.runtime.tests.preflight.passing_cases import FINE, UNJUDGED, WARNED

pytestmark = pytest.mark.vllm

ALL = {**FINE, **WARNED, **UNJUDGED, **BROKEN}


@pytest.mark.parametrize("sentence", ALL)
def test_a_plugin(sentence: str, engine: Zygote, tmp_path: Path) -> None:
    case = ALL[sentence]
    model = judging.model(tmp_path / "model", case.config, case.weights)
    _judged(engine, tmp_path, str(model), case)


@pytest.mark.parametrize("sentence", HUB)
def test_a_model(sentence: str, engine: Zygote, tmp_path: Path) -> None:
    model, case = HUB[sentence]
    _judged(engine, tmp_path, model, case)


def _judged(engine: Zygote, folder: Path, model: str, case: Case) -> None:
    arguments = [model, "--skip-tokenizer-init", *case.arguments]
    report = engine.judge(folder, case.plugins, arguments, **case.request).report
    told = [*(fault.message for fault in report.faults), *report.warnings]
    assert verdicts(report) == (case.verdict, list(case.faults)), told
    text = "\n".join(told)
    assert [piece for piece in case.says if piece not in text] == [], text
