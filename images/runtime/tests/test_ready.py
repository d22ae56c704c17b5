from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from bowsprit_runtime.ready import main, why_not

LISTED = json.dumps({"object": "list", "data": [{"id": "llama"}, {"id": "adapter"}]})


@contextmanager
def server(status: int, body: str, key: str | None = None) -> Iterator[str]:
    """vLLM's /v1/models as far as a probe sees it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            refused = key is not None and self.headers.get("Authorization") != f"Bearer {key}"
            self.send_response(401 if refused else status)
            self.end_headers()
            self.wfile.write(b"" if refused else body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


ANSWERS = {
    "the model is listed": (200, LISTED, ""),
    "another model is listed": (200, json.dumps({"data": [{"id": "gpt"}]}), "lists gpt, not llama"),
    "no model is listed": (200, json.dumps({"data": []}), "lists no model, not llama"),
    "an answer that is no list": (200, "[1]", "lists no model"),
    "an answer that is no JSON": (200, "<html>", "lists no model"),
    "an error": (500, "", "answers 500"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_ready_when(case: str) -> None:
    status, body, told = ANSWERS[case]
    with server(status, body) as url:
        wrong = why_not(url, "llama", None)
    assert told in wrong
    assert bool(told) is bool(wrong)


def test_a_key_of_the_environment_is_shown_and_the_name_is_checked() -> None:
    with server(200, LISTED, key="secret") as url:
        assert why_not(url, "llama", "secret") == ""
        assert "not gpt" in why_not(url, "gpt", "secret")


def test_a_server_that_asks_for_a_key_of_its_arguments_serves() -> None:
    with server(200, LISTED, key="secret") as url:
        assert why_not(url, "llama", None) == ""


def test_nobody_listening_is_not_ready_and_the_key_is_not_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(200, LISTED) as url:
        pass
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    assert main([url, "llama"]) == 1
    said = capsys.readouterr().out
    assert "does not answer" in said
    assert "secret" not in said
