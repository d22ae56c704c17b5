"""Keeps secrets out of the report: more people may read it than the pod's environment.

A plugin may print what it likes, and exceptions quote what they got. So every value of the environment is
taken for a secret unless its name is known to hold none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from bowsprit_runtime.preflight.request import request_of
from bowsprit_runtime.report import Fault, Report

SHORTEST = 7
"""Characters; shorter values are words and numbers that would tear holes into every message."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CRED|AUTH", re.IGNORECASE)
_HARMLESS_NAME = re.compile(
    r"^(PATH|PYTHON\w*|HOME|PWD|OLDPWD|SHLVL|HOSTNAME|USER|LOGNAME|SHELL|TERM|LANG|LC_\w+|TZ|TMPDIR|_|VIRTUAL_ENV"
    r"|(LD|CUDA|NVIDIA|NV|NCCL|HIP|ROCM|ROCR|OMP|MKL|TORCH|TRITON|XDG|VLLM|HF|TRANSFORMERS|KUBERNETES|BOWSPRIT)_\w+)$"
)
_SECRET_FLAGS = ("--api-key", "--hf-token")
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")


def without_secrets(report: Report, environ: Mapping[str, str], arguments: Sequence[str]) -> Report:
    """The report with every text redacted."""
    hidden = secrets(environ, arguments)
    return replace(
        report,
        faults=[Fault(each.reason, each.blame, redacted(each.message, hidden)) for each in report.faults],
        warnings=[redacted(warning, hidden) for warning in report.warnings],
    )


def of_this_process(text: str) -> str:
    """A text without this process's own secrets. To be asked before a text is cut or folded: of half a secret
    nobody knows what it is."""
    return redacted(text, secrets(os.environ, request_of(os.environ).arguments))


def secrets(environ: Mapping[str, str], arguments: Sequence[str]) -> dict[str, str]:
    """What must not be told -> what is told in its place; the longest first."""
    found = {
        spelling: f"[value of {name}]"
        for name, whole in environ.items()
        if _SECRET_NAME.search(name) or not _HARMLESS_NAME.match(name)
        for value in (whole, *whole.splitlines())
        for spelling in _spellings(value)
        if len(spelling.strip()) >= SHORTEST
    }
    found.update((value, "[hidden]") for value in _secret_arguments(arguments) if len(value) >= SHORTEST)
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _spellings(value: str) -> set[str]:
    """As it is, and as messages quote it: in Python, in JSON, in a URL, in one line."""
    return {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, safe=""), " ".join(value.split())}


def _secret_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Values of the flags that hold secrets, in each spelling that argparse takes."""
    open_flag = False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        flag = name.replace("_", "-")
        if flag.startswith("--"):
            secret = len(flag) > 4 and any(known.startswith(flag) for known in _SECRET_FLAGS)
            if secret and equals:
                yield value
            open_flag = secret and not equals
        elif open_flag:
            yield argument


def redacted(text: str, hidden: Mapping[str, str]) -> str:
    """The text with every secret replaced, and without credentials in URLs."""
    for secret, instead in hidden.items():
        text = text.replace(secret, instead)
    return _CREDENTIALS.sub("", text)
