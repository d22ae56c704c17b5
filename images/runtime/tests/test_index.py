"""A requirement from a real index on this machine, by real pip: what comes, and why it does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from bowsprit_runtime import reasons
from bowsprit_runtime.index import fetch
from bowsprit_runtime.plugins import Plugin
from bowsprit_runtime.report import Fault
from images.runtime.tests.made import wheel


class Index:
    """A package index in the form of PEP 503, with one project."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.status, self.requires_python = folder, 200, ""
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = index.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Not on the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/wheels"

    def answer(self, path: str) -> tuple[int, bytes]:
        if self.status != 200:
            return self.status, b""
        if path == "/wheels/my-opt/":
            attribute = f' data-requires-python="{self.requires_python}"' if self.requires_python else ""
            links = (
                f'<a href="/files/{file.name}"{attribute}>{file.name}</a>' for file in self.folder.iterdir()
            )
            return 200, "\n".join(links).encode()
        file = self.folder / path.rpartition("/")[2]
        return (200, file.read_bytes()) if path.startswith("/files/") and file.is_file() else (404, b"")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    for name in (
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    (tmp_path / "files").mkdir()
    index = Index(tmp_path / "files")
    thread = Thread(target=index.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield index
    index.server.shutdown()
    index.server.server_close()
    thread.join()


def fetched(index: Index, tmp_path: Path, requirement: str = "my-opt==1.0", *hashes: str) -> list[str]:
    fetch(Plugin(Path(), requirement=requirement, hashes=hashes, index=index.url), tmp_path / "got")
    return [file.name for file in (tmp_path / "got").iterdir()]


def refused(index: Index, tmp_path: Path, requirement: str = "my-opt==1.0", *hashes: str) -> Fault:
    with pytest.raises(Fault) as caught:
        fetched(index, tmp_path, requirement, *hashes)
    caught.value.message = caught.value.message.replace(index.url, "INDEX")
    return caught.value


def test_the_wheel_comes_alone_when_one_of_the_hashes_is_right(index: Index, tmp_path: Path) -> None:
    file = wheel(index.folder, "my-opt", metadata="Requires-Dist: torch==0\n")
    digest = f"sha256:{sha256(file.read_bytes()).hexdigest()}"
    assert fetched(index, tmp_path, "my-opt==1.0", f"sha256:{'0' * 64}", digest) == [file.name]


def test_another_hash_is_told_with_both(index: Index, tmp_path: Path) -> None:
    file = wheel(index.folder, "my-opt")
    fault = refused(index, tmp_path, "my-opt==1.0", f"sha256:{'0' * 64}")
    got = sha256(file.read_bytes()).hexdigest()
    assert (fault.reason, fault.blame) == (reasons.HASH_MISMATCH, "spec")
    assert fault.message == (
        f"my-opt==1.0 from INDEX has another hash than the spec: expected sha256 {'0' * 64}, got {got}."
    )


def test_a_wheel_for_another_python(index: Index, tmp_path: Path) -> None:
    wheel(index.folder, "my-opt", tag="cp27-cp27m-win32")
    fault = refused(index, tmp_path)
    assert fault.reason == reasons.WHEEL_INCOMPATIBLE
    assert fault.message == (
        "my-opt==1.0 from INDEX is for cp27-cp27m-win32, which the engine image's Python cannot install."
    )


def test_a_version_that_wants_another_python(index: Index, tmp_path: Path) -> None:
    wheel(index.folder, "my-opt")
    index.requires_python = "&gt;=4"
    fault = refused(index, tmp_path)
    assert fault.reason == reasons.REQUIRES_PYTHON
    version = ".".join(str(part) for part in sys.version_info[:3])
    assert fault.message == (f"my-opt==1.0 from INDEX requires a different Python ({version} not in: '>=4').")


def test_a_version_that_exists_as_source_only(index: Index, tmp_path: Path) -> None:
    wheel(index.folder, "my-opt", "0.9")
    (index.folder / "my-opt-1.0.tar.gz").touch()
    fault = refused(index, tmp_path)
    assert (fault.reason, fault.message) == (
        reasons.SOURCE_ONLY,
        "my-opt==1.0 from INDEX exists as source only.",
    )


@pytest.mark.parametrize("requirement", ["my-opt==2.0", "nobody==1.0"])
def test_what_the_index_does_not_have(requirement: str, index: Index, tmp_path: Path) -> None:
    wheel(index.folder, "my-opt")
    fault = refused(index, tmp_path, requirement)
    assert (fault.reason, fault.blame) == (reasons.REQUIREMENT_NOT_FOUND, "spec")
    assert fault.message == f"INDEX has no {requirement}."


def test_an_index_that_wants_to_know_who_asks(index: Index, tmp_path: Path) -> None:
    index.status = 403
    fault = refused(index, tmp_path)
    assert (fault.reason, fault.blame) == (reasons.REQUIREMENT_NOT_FOUND, "spec")
    assert fault.message == "INDEX refuses to give my-opt==1.0 (403 Client Error)."


def test_an_index_that_is_ill(index: Index, tmp_path: Path) -> None:
    index.status = 502
    fault = refused(index, tmp_path)
    assert (fault.reason, fault.blame) == (reasons.INDEX_UNREACHABLE, "network")


def test_an_index_that_nobody_serves(index: Index, tmp_path: Path) -> None:
    index.url = "http://127.0.0.1:9/wheels"
    fault = refused(index, tmp_path)
    assert (fault.reason, fault.blame) == (reasons.INDEX_UNREACHABLE, "network")


def test_credentials_of_an_index_are_told_to_nobody(index: Index, tmp_path: Path) -> None:
    index.url = index.url.replace("http://", "http://user:secret@")
    with pytest.raises(Fault) as caught:
        fetched(index, tmp_path, "nobody==1.0")
    assert "secret" not in caught.value.message
