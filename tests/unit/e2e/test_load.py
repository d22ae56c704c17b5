"""The load of the end-to-end tests notices what a client would: errors, and streams that break off."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from e2e.tests.load import ask, client

WHOLE = 'data: {"choices": []}\n\ndata: {"choices": []}\n\ndata: [DONE]\n\n'
ANSWERS = {
    "whole": (200, WHOLE),
    "broken": (200, 'data: {"choices": []}\n\n'),
    "error": (500, "no"),
    "empty": (200, ""),
}


class Engine(BaseHTTPRequestHandler):
    answer = "whole"
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, text = ANSWERS[type(self).answer]
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[str]:
    """The address of a stub of vLLM."""
    with HTTPServer(("127.0.0.1", 0), Engine) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def connection(engine: str) -> Iterator[http.client.HTTPConnection]:
    with closing(http.client.HTTPConnection(engine)) as opened:
        yield opened


def test_a_whole_stream_has_tokens(connection: http.client.HTTPConnection) -> None:
    assert ask(connection, "m", 2) == 2


@pytest.mark.parametrize(
    ("answer", "wrong"), [("broken", "broke off"), ("empty", "broke off"), ("error", "status 500")]
)
def test_a_failure_is_told(
    answer: str, wrong: str, connection: http.client.HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "answer", answer)
    with pytest.raises(ValueError, match=wrong):
        ask(connection, "m", 2)


@pytest.mark.parametrize("kind", ["short", "kept", "long"])
def test_a_client_goes_on_after_a_failure_and_ends_when_it_is_told(
    kind: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["error", "whole"])
    ended = threading.Event()

    def next_answer() -> str:
        answer = next(answers)
        if answer == "whole":
            ended.set()
        return answer

    class Told:
        """Lets exactly two requests through."""

        def wait(self, _: float) -> bool:
            if ended.is_set():
                return True
            Engine.answer = next_answer()
            return False

    monkeypatch.setattr(Engine, "answer", "whole")
    results = client(kind, f"http://{engine}", "m", 9, Told())  # type: ignore[arg-type]
    assert [(each["kind"], each["tokens"]) for each in results] == [(kind, None), (kind, 2)]
    assert "status 500" in results[0]["wrong"]
    assert all(each["begin"] <= each["end"] for each in results)
