"""The first cause of an exception, and what it says was lacking."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.preflight.causes import TEXT_LIMIT, lack_in_constructor, lack_of_gpu, origin, told


def caught(folder: Path, source: str) -> BaseException:
    """What running a plugin's file raises."""
    file = folder / "my_plugin.py"
    file.write_text(source)
    try:
        exec(compile(source, str(file), "exec"), {})
    except Exception as error:  # noqa: BLE001 - it is looked at
        return error
    raise AssertionError("it raised nothing")


TOLD = {
    "one exception": ("raise RuntimeError('no licence')", "RuntimeError: no licence (my_plugin.py:1)"),
    "one without words": ("raise RuntimeError", "RuntimeError (my_plugin.py:1)"),
    "a missing key says which": ("{}['a']", "KeyError: 'a' (my_plugin.py:1)"),
    "the cause beneath, though it was hidden": (
        "try:\n    {}['a']\nexcept KeyError:\n    raise ImportError('0.28 is required') from None",
        "ImportError: 0.28 is required (my_plugin.py:4); first cause: KeyError: 'a' (my_plugin.py:2)",
    ),
    "the same words twice are told once": (
        "try:\n    open('/nowhere/a')\nexcept OSError as e:\n    raise ValueError(f'cannot start: {e}')",
        "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/a' (my_plugin.py:2)",
    ),
    "a fault of syntax": ("def f(:\n", "SyntaxError: invalid syntax (my_plugin.py, line 1) (my_plugin.py:1)"),
}


@pytest.mark.parametrize("case", [case for case in TOLD if "syntax" not in case])
def test_what_is_told(case: str, tmp_path: Path) -> None:
    source, words = TOLD[case]
    error = caught(tmp_path, source)
    assert told(error).replace(f"{tmp_path}/", "") == words


def test_long_words_are_cut_and_the_place_stays(tmp_path: Path) -> None:
    words = told(caught(tmp_path, "raise ValueError('x' * 10_000)"))
    assert len(words) < 500
    assert words.endswith("my_plugin.py:1)")


@pytest.mark.parametrize("raised", ["ValueError({!r})", "KeyError({!r})"])
@pytest.mark.parametrize("before", range(0, TEXT_LIMIT + 1, 10))
def test_a_secret_is_hidden_before_the_words_are_cut(
    before: int, raised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "-".join(f"s3cr3t{number}" for number in range(20))
    monkeypatch.setenv("MY_LOGIN", secret)
    said = told(caught(tmp_path, f"raise {raised.format('x' * before + secret + 'y' * TEXT_LIMIT)}"))
    assert "s3cr" not in said


def test_the_standard_library_is_never_the_origin(tmp_path: Path) -> None:
    error = caught(tmp_path, "import json\njson.loads('{')")
    began = origin(error)
    assert began
    assert (Path(began.file).name, began.line) == ("my_plugin.py", 2)


LACKS = {
    "an environment variable": (
        "import os\nos.environ['MY_CODEBOOK']",
        reasons.NEEDS_ENVIRONMENT,
        "the environment variable MY_CODEBOOK",
    ),
    "an environment variable, in words": (
        "raise RuntimeError('please set the environment variable MY_KEY')",
        reasons.NEEDS_ENVIRONMENT,
        "the environment variable MY_KEY",
    ),
    "a file": ("open('/nowhere/codebook')", reasons.NEEDS_FILE, "the file /nowhere/codebook"),
    "a download": (
        "raise OSError('org/x is not a local folder and is not a valid model identifier')",
        reasons.NEEDS_DOWNLOAD,
        "a download",
    ),
    "weights": (
        "raise RuntimeError('Cannot copy out of meta tensor; no data!')",
        reasons.NEEDS_WEIGHTS,
        "its weights",
    ),
    "a backend of the GPU": (
        "raise NotImplementedError('Sparse Attention is not supported on CPU.')",
        reasons.NEEDS_GPU,
        "a GPU",
    ),
    "a GPU": ("raise RuntimeError('No CUDA GPUs are available')", reasons.NEEDS_GPU, "a GPU"),
}


@pytest.mark.parametrize("case", LACKS)
def test_what_a_constructor_lacked(case: str, tmp_path: Path) -> None:
    source, reason, without = LACKS[case]
    assert lack_in_constructor(caught(tmp_path, source)) == (reason, without)


@pytest.mark.parametrize("source", ["{}['a']", "raise TypeError('expected int')", "import nowhere"])
def test_what_is_simply_wrong_lacks_nothing(source: str, tmp_path: Path) -> None:
    error = caught(tmp_path, source)
    assert lack_in_constructor(error) is None
    assert lack_of_gpu(error) is None


def test_a_variable_that_is_set_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MY_CODEBOOK", "x")
    assert lack_in_constructor(caught(tmp_path, "import os\n{}[os.environ['MY_CODEBOOK']]")) is None
