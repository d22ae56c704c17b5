"""A model hub that answers as huggingface.co does: by status and X-Error-Code."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from images.runtime.tests.preflight.judging import CONFIG

REFUSALS = {
    "org/missing": (404, "RepoNotFound"),
    "org/private": (401, "RepoNotFound"),
    "org/gated": (403, "GatedRepo"),
    "org/without-config": (404, "EntryNotFound"),
}
COMMIT = "0123456789012345678901234567890123456789"


class _Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET(body=False)

    def do_GET(self, *, body: bool = True) -> None:
        parts = self.path.strip("/").split("/")
        model = "/".join(parts[2:4] if parts[:2] == ["api", "models"] else parts[:2])
        if model == "org/unreachable":
            self.close_connection = True
        elif model in REFUSALS:
            self._answer(*REFUSALS[model], b"", body=body)
        elif "resolve" in parts and parts[3] != "main" and parts[3] != COMMIT:
            self._answer(404, "RevisionNotFound", b"", body=body)
        elif parts[:2] == ["api", "models"]:
            files = [
                {"type": "file", "path": "config.json", "rfilename": "config.json", "oid": COMMIT, "size": 1}
            ]
            info = {"id": model, "sha": COMMIT, "siblings": files}
            self._answer(200, "", json.dumps(files if "tree" in parts else info).encode(), body=body)
        elif parts[-1] == "config.json":
            self._answer(200, "", json.dumps(CONFIG).encode(), body=body)
        else:
            self._answer(404, "EntryNotFound", b"", body=body)

    def _answer(self, status: int, code: str, content: bytes, *, body: bool) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"config"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Not into the tests' output."""


@contextmanager
def serving() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
