"""One request that a new engine must answer before its pod is ready (spec.rollout.verify).

It runs beside vLLM, as its child: so nobody has to reach the pod from outside, the API key stays in it, and
an answer may take longer than a probe. An engine that answers otherwise than it must is ended, for nobody is
to be answered so; why stands in the termination log, where the operator reads it.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from bowsprit_runtime import ready, reasons, self_check
from bowsprit_runtime.preflight import redact
from bowsprit_runtime.report import TERMINATION_LOG, Fault, Report, cut, encoded

SECONDS = 300
"""For the answer."""
_MOST_BYTES = 1 << 20
_CONTAINS_LIMIT, _ANSWER_LIMIT = 60, 120
"""Characters: the operator keeps 256 of the whole."""


def main(arguments: list[str]) -> int:
    """`verify PID`: asks the server when it lists the model, and ends PID, vLLM, when the answer is wrong."""
    check, engine = self_check.check_of(os.environ), int(arguments[0])
    if check is None:
        return 0
    key = os.environ.get("VLLM_API_KEY")
    while ready.why_not(check.url, check.model, key):
        time.sleep(1)
        if os.getppid() != engine:
            return 0
    wrong = why_not(check, key)
    if not wrong:
        self_check.passed()
        print(f"bowsprit: verify: {check.path} answered as it must", flush=True)
        return 0
    print(f"bowsprit: verify: {wrong}", flush=True)
    report = Report([Fault(reasons.VERIFY_FAILED, "model", wrong)])
    Path(TERMINATION_LOG).write_bytes(encoded(report.as_json()))
    if os.getppid() == engine:
        os.kill(engine, signal.SIGTERM)
    return 1


def why_not(check: self_check.Check, key: str | None) -> str:
    """What is wrong with the answer, without secrets; empty when nothing is."""
    try:
        status, body = _ask(check, key)
    except (OSError, http.client.HTTPException) as silent:
        return f"{check.path} did not answer: {_told(str(silent) or type(silent).__name__, _ANSWER_LIMIT)}"
    if not http.HTTPStatus.OK <= status < http.HTTPStatus.MULTIPLE_CHOICES:
        return f"{check.path} answered {status}: {_told(_error(body), _ANSWER_LIMIT)}"
    text = _text(body)
    if check.contains in text:
        return ""
    wanted, found = _told(check.contains, _CONTAINS_LIMIT), _told(text, _ANSWER_LIMIT)
    return f"{check.path} answered without '{wanted}': '{found}'"


def _ask(check: self_check.Check, key: str | None) -> tuple[int, bytes]:
    connection = ready.connection(check.url, SECONDS)
    try:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        connection.request("POST", check.path, json.dumps(check.body()), headers)
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES)
    finally:
        connection.close()


def _text(body: bytes) -> str:
    """What the model said."""
    choices = _at(_json(body), "choices")
    said = []
    for choice in choices if isinstance(choices, list) else []:
        text = _at(choice, "text")
        said.append(text if text is not None else _at(_at(choice, "message"), "content"))
    return "\n".join(text for text in said if isinstance(text, str))


def _error(body: bytes) -> str:
    """vLLM's own words; the whole answer where there are none."""
    content = _json(body)
    message = _at(_at(content, "error"), "message") or _at(content, "message")
    return message if isinstance(message, str) else body.decode(errors="replace")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _told(text: str, limit: int) -> str:
    """In one line."""
    hidden = redact.redacted(text, redact.secrets(os.environ, []))
    return cut(" ".join(hidden.split()), limit)
