"""The self-check of a new engine: what is asked, what passes, and what becomes of an engine that fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bowsprit_runtime import ready, self_check, verify
from bowsprit_runtime.distributions import RUNTIME

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
PARIS = json.dumps({"choices": [{"text": " Paris, a city\nin France"}]})
SAID_PARIS = json.dumps({"choices": [{"message": {"role": "assistant", "content": "It is Paris."}}]})


class Engine:
    """vLLM's server as far as a self-check sees it."""

    def __init__(self, answer: str = PARIS, status: int = 200, key: str = "") -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply(200, json.dumps({"data": [{"id": "llama"}]}))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                engine.asked.append((self.path, body))
                if key and self.headers.get("Authorization") != f"Bearer {key}":
                    self.reply(401, '{"error": "Unauthorized"}')
                elif status:
                    self.reply(status, answer)
                else:
                    self.close_connection = True

            def reply(self, code: int, text: str) -> None:
                self.send_response(code)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._handler = Handler

    @contextmanager
    def serving(self) -> Iterator[str]:
        with ThreadingHTTPServer(("127.0.0.1", 0), self._handler) as running:
            thread = threading.Thread(target=running.serve_forever, daemon=True)
            thread.start()
            yield f"http://127.0.0.1:{running.server_port}"
            running.shutdown()
            thread.join()


def check(url: str, **changes: Any) -> self_check.Check:
    given = {"path": COMPLETIONS, "prompt": "The capital of France is", "max_tokens": 8, **changes}
    return self_check.Check(url=url, model="llama", **given)


PASSED: dict[str, tuple[Engine, dict[str, Any]]] = {
    "any answer will do": (Engine(), {}),
    "the text is in the answer": (Engine(), {"contains": "Paris"}),
    "the text is in the answer of a chat": (Engine(SAID_PARIS), {"path": CHAT, "contains": "Paris"}),
    "any answer will do, even one that says nothing": (Engine("{}"), {}),
    "the status says that all is well": (Engine(PARIS, 201), {}),
}


@pytest.mark.parametrize(("engine", "asked"), PASSED.values(), ids=PASSED)
def test_it_is_passed_when(engine: Engine, asked: dict[str, Any]) -> None:
    with engine.serving() as url:
        assert verify.why_not(check(url, **asked), None) == ""


ERROR = json.dumps({"error": {"message": "EngineCore encountered an issue.", "code": 500}})
NO_TEMPLATE = json.dumps({"message": "default chat template is no longer allowed"})
FAILED: dict[str, tuple[Engine, dict[str, Any], str]] = {
    "the text is not in the answer": (
        Engine(),
        {"contains": "Rome"},
        "/v1/completions answered without 'Rome': 'Paris, a city in France'",
    ),
    "the answer has the letters otherwise": (Engine(), {"contains": "paris"}, "without 'paris'"),
    "a chat says nothing": (
        Engine('{"choices": [{"message": {"content": null}}]}'),
        {"path": CHAT, "contains": "Paris"},
        "/v1/chat/completions answered without 'Paris': ''",
    ),
    "the text stands in the answer, and the model has not said it": (
        Engine('{"id": "Paris", "choices": [{"text": "x"}]}'),
        {"contains": "Paris"},
        "answered without 'Paris': 'x'",
    ),
    "the answer is no JSON": (Engine("<html>"), {"contains": "Paris"}, "answered without 'Paris': ''"),
    "the choices are none": (Engine('{"choices": 3}'), {"contains": "Paris"}, "without 'Paris': ''"),
    "the engine fails": (Engine(ERROR, 500), {}, "answered 500: EngineCore encountered an issue."),
    "an error of another shape": (Engine(NO_TEMPLATE, 400), {}, "answered 400: default chat template"),
    "an error that is no JSON": (Engine("no such page", 404), {}, "answered 404: no such page"),
    "the connection ends without an answer": (Engine(status=0), {}, "/v1/completions did not answer: "),
}


@pytest.mark.parametrize(("engine", "asked", "told"), FAILED.values(), ids=FAILED)
def test_it_is_not_passed_when(engine: Engine, asked: dict[str, Any], told: str) -> None:
    with engine.serving() as url:
        assert told in verify.why_not(check(url, **asked), None)


def test_what_is_asked() -> None:
    engine, said = Engine(), {"model": "llama", "max_tokens": 8, "temperature": 0}
    with engine.serving() as url:
        verify.why_not(check(url), None)
        verify.why_not(check(url, path=CHAT), None)
    question = "The capital of France is"
    assert engine.asked == [
        (COMPLETIONS, {**said, "prompt": question}),
        (CHAT, {**said, "messages": [{"role": "user", "content": question}]}),
    ]


def test_the_pods_own_key_is_shown_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "very-secret-key")
    leak = json.dumps({"error": {"message": "got very-secret-key"}})
    with Engine(key="very-secret-key").serving() as url:
        assert verify.why_not(check(url), "very-secret-key") == ""
        assert "answered 401" in verify.why_not(check(url), "another")
    with Engine(leak, 500).serving() as url:
        assert "got [value of VLLM_API_KEY]" in verify.why_not(check(url), "very-secret-key")


def test_the_words_fit_into_what_the_operator_keeps() -> None:
    long = json.dumps({"choices": [{"text": "nonsense " * 999}]})
    with Engine(long).serving() as url:
        told = verify.why_not(check(url, path=CHAT, contains="x" * 256), None)
    assert len(f"container engine: {told}") <= 256


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of a container: a folder of its own for temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return {**os.environ, "TMPDIR": str(tmp_path)}


def asking(environ: dict[str, str], url: str, **changes: Any) -> dict[str, str]:
    text = json.dumps(vars(check(url, **changes)))
    return {**environ, self_check.ENVIRONMENT: text}


STAND_IN = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from bowsprit_runtime import self_check
self_check.begin(os.environ, None)
print("began", flush=True)
signal.pause()
"""
"""A process that begins the check and becomes vLLM, which runs until it is ended."""


@contextmanager
def container(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", STAND_IN, str(RUNTIME)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def line_of(running: subprocess.Popen[str], words: str) -> str:
    """Waits for a line of the container's log."""
    assert running.stdout is not None
    return next(line for line in running.stdout if words in line)


def test_a_pod_is_ready_when_its_engine_has_answered_as_it_must(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Engine()
    with engine.serving() as url:
        given = asking(environ, url, contains="Paris")
        monkeypatch.setenv(self_check.ENVIRONMENT, given[self_check.ENVIRONMENT])
        assert ready.main([url, "llama"]) == 1
        assert "spec.rollout.verify is not answered yet" in capsys.readouterr().out
        with container(given) as running:
            line_of(running, "/v1/completions answered as it must")
            assert running.poll() is None
            assert ready.main([url, "llama"]) == 0
            assert ready.main([url, "llama"]) == 0
        assert len(engine.asked) == 1, "once for each container"
        with container(given) as running:
            line_of(running, "began")
            line_of(running, "answered as it must")
        assert len(engine.asked) == 2


def test_the_answer_of_an_earlier_container_is_forgotten(environ: dict[str, str]) -> None:
    self_check.passed()
    with container(asking(environ, "http://127.0.0.1:1")) as running:
        line_of(running, "began")
        assert self_check.is_open(asking(environ, ""))


def test_where_nothing_is_asked_nothing_is_waited_for(environ: dict[str, str]) -> None:
    with container(environ) as running:
        line_of(running, "began")
        assert not self_check.is_open(environ)


def test_an_engine_that_answers_wrongly_is_ended_and_the_operator_can_read_why(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "termination-log"
    monkeypatch.setattr(verify, "TERMINATION_LOG", str(log))
    with (
        Engine().serving() as url,
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as it,
    ):
        monkeypatch.setenv(
            self_check.ENVIRONMENT, asking(environ, url, contains="Rome")[self_check.ENVIRONMENT]
        )
        monkeypatch.setattr(os, "getppid", lambda: it.pid)
        assert verify.main([str(it.pid)]) == 1
        assert it.wait() == -signal.SIGTERM
    told = json.loads(log.read_text())
    assert told["verdict"] == "Broken"
    (fault,) = told["faults"]
    assert fault["reason"] == "VerifyFailed"
    assert "answered without 'Rome': 'Paris, a city in France'" in fault["message"]
    assert self_check.is_open({self_check.ENVIRONMENT: "{}"})


def test_it_ends_with_its_engine_and_ends_nobody_else(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that never comes up is not its matter."""
    with Engine().serving() as url:
        pass
    monkeypatch.setenv(self_check.ENVIRONMENT, asking(environ, url)[self_check.ENVIRONMENT])
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(os, "kill", lambda *arguments: pytest.fail("nobody is to be ended"))
    assert verify.main(["1"]) == 0
