"""One engine process for all tests that can share it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.runtime.tests.preflight import hub, judging


@pytest.fixture(scope="session")
def python() -> str:
    """The Python of an engine image; BOWSPRIT_VLLM_PYTHON names one that has vLLM."""
    named = os.environ.get("BOWSPRIT_VLLM_PYTHON")
    if not named:
        pytest.skip("BOWSPRIT_VLLM_PYTHON names no Python with vLLM; `make compat` builds some")
    return named


@pytest.fixture(scope="session")
def engine(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[judging.Zygote]:
    scratch = tmp_path_factory.mktemp("engine")
    more = {
        "HF_HOME": str(scratch / "hf"),
        "VLLM_CACHE_ROOT": str(scratch / "cache"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    with hub.serving() as endpoint, judging.zygote(python, scratch, HF_ENDPOINT=endpoint, **more) as running:
        yield running


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return judging.model(tmp_path / "model")
