"""A Git repository that is served over HTTP on this machine, and somebody who pushes to it."""

from __future__ import annotations

import gzip
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SERVICE = "git-upload-pack"
_WHO = {
    "GIT_AUTHOR_NAME": "team",
    "GIT_AUTHOR_EMAIL": "team@example.com",
    "GIT_COMMITTER_NAME": "team",
    "GIT_COMMITTER_EMAIL": "team@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Repository:
    """The served repository and a clone in which it is worked on."""

    def __init__(self, directory: Path, url: str) -> None:
        self.url = url
        self._clone = directory / "clone"
        bare = directory / "served.git"
        git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
        git("clone", "--quiet", str(bare), str(self._clone))
        self._git("checkout", "--quiet", "-B", "main")

    def push(self, message: str, files: Mapping[str, str | None]) -> str:
        """Writes files, removes those that are None, and pushes all as one commit; returns its hash."""
        for name, text in files.items():
            path = self._clone / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        return self._pushed()

    def revert(self) -> str:
        """`git revert HEAD` and `git push`; returns the new commit's hash."""
        self._git("revert", "--no-edit", "HEAD")
        return self._pushed()

    def _pushed(self) -> str:
        self._git("push", "--quiet", "origin", "main")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        return git("-C", str(self._clone), *arguments)


@contextmanager
def served(directory: Path) -> Iterator[Repository]:
    """A repository whose content can be fetched until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(directory / "served.git")) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Repository(directory, f"http://127.0.0.1:{server.server_port}/models")
        server.shutdown()
        thread.join()


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], env={**os.environ, **_WHO}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def _handler_of(repository: Path) -> type[BaseHTTPRequestHandler]:
    """Git's smart protocol over HTTP, for reading: both requests are answered by `git upload-pack`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.endswith(f"/info/refs?service={SERVICE}"):
                self.send_error(404)
                return
            head = f"# service={SERVICE}\n".encode()
            refs = self._upload_pack("--advertise-refs")
            self._answer("advertisement", b"%04x" % (len(head) + 4) + head + b"0000" + refs)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            self._answer("result", self._upload_pack(asked=body))

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _upload_pack(self, *options: str, asked: bytes = b"") -> bytes:
            command = ["git", "upload-pack", "--stateless-rpc", *options, str(repository)]
            return subprocess.run(command, input=asked, stdout=subprocess.PIPE, check=True).stdout

        def _answer(self, kind: str, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"application/x-{SERVICE}-{kind}")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
