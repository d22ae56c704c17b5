"""Weights and config as the padded class gets them, under the Python of an engine: there is no torch here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import uneven_llama

pytestmark = pytest.mark.vllm


def test_every_tensor_has_its_values_and_zeros_elsewhere() -> None:
    python = os.environ.get("BOWSPRIT_VLLM_PYTHON")
    if not python:
        pytest.skip("BOWSPRIT_VLLM_PYTHON names no Python with vLLM")
    source = Path(uneven_llama.__file__).parents[1]
    check = Path(__file__).with_name("check_padding.py")
    done = subprocess.run(
        [python, str(check)],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
