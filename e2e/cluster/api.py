"""A small client of the API server: readiness checks, and creating thousands of nodes faster than kubectl
would."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from e2e.cluster.certs import KeyPair

REQUEST_SECONDS = 30.0


class ApiError(Exception):
    """The API server refused a request; the message is its own."""


class Api:
    """An API server, as the user of a kubeconfig sees it. Threads may share it."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        with tempfile.NamedTemporaryFile("w") as pem:  # ssl reads certificates from files only
            pem.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            pem.flush()
            self._context.load_cert_chain(pem.name)
        self._server = urlsplit(cluster["server"])

    def answers(self, path: str) -> bool:
        """Whether `path` can be read now: for readiness checks, where any failure means not yet."""
        try:
            with closing(self._connect()) as connection:
                return _send(connection, "GET", path)[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str) -> dict[str, Any]:
        """The object or list at `path`."""
        with closing(self._connect()) as connection:
            return _checked(connection, "GET", path)

    def create_all(self, path: str, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Creates objects in the collection at `path`, one after the other over one connection."""
        with closing(self._connect()) as connection:
            for manifest in manifests:
                _checked(connection, "POST", path, manifest)

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """The events of a watch, until the API server ends it."""
        with closing(self._connect()) as connection:
            connection.timeout = None  # a watch may be silent for long
            connection.request("GET", path)
            for line in connection.getresponse():
                yield json.loads(line)

    def _connect(self) -> http.client.HTTPSConnection:
        assert self._server.hostname is not None
        return http.client.HTTPSConnection(
            self._server.hostname, self._server.port, context=self._context, timeout=REQUEST_SECONDS
        )


def _send(
    connection: http.client.HTTPSConnection, method: str, path: str, body: Any = None
) -> tuple[int, bytes]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def _checked(
    connection: http.client.HTTPSConnection, method: str, path: str, body: Any = None
) -> dict[str, Any]:
    status, content = _send(connection, method, path, body)
    answer: dict[str, Any] = json.loads(content)
    if status >= http.HTTPStatus.BAD_REQUEST:
        raise ApiError(f"{method} {path}: {status} {answer.get('message', '')}")
    return answer


def write_kubeconfig(path: Path, server: str, authority: Path, user: KeyPair) -> Path:
    """A kubeconfig that holds the certificates themselves, so that it may be copied anywhere."""
    certificate = {
        "client-certificate-data": _encoded(user.certificate),
        "client-key-data": _encoded(user.key),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "bowsprit",
                "cluster": {"server": server, "certificate-authority-data": _encoded(authority)},
            }
        ],
        "users": [{"name": user.certificate.stem, "user": certificate}],
        "contexts": [{"name": "bowsprit", "context": {"cluster": "bowsprit", "user": user.certificate.stem}}],
        "current-context": "bowsprit",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _decoded(content: str) -> str:
    return base64.b64decode(content).decode()
