"""What an answer of the API server means: sorted by what the caller may conclude from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bowsprit.cluster.client import _failure
from bowsprit.cluster.errors import (
    ClusterError,
    Conflict,
    Gone,
    NotFound,
    NotServed,
    Refused,
    Unavailable,
)


def status(code: int, message: str = "no", **details: Any) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "message": message, "details": details}).encode()


CASES: dict[str, tuple[int, bytes, type[ClusterError]]] = {
    "an object that is not there is named": (404, status(404, name="x", kind="pods"), NotFound),
    "a path that nobody serves is a bare page": (404, b"404 page not found\n", NotServed),
    "a kind that is not served is a Status without a name": (404, status(404), NotServed),
    "an object that somebody was faster with": (409, status(409, name="x"), Conflict),
    "an expired version": (410, status(410), Gone),
    "a refusal": (422, status(422, name="x"), Refused),
    "a missing right": (403, status(403), Refused),
    "too many requests": (429, status(429), Unavailable),
    "a server that is starting": (503, b"", Unavailable),
    "a proxy's page": (502, b"<html>bad gateway</html>", Unavailable),
    "JSON that is no Status": (500, b"[]", Unavailable),
}


@pytest.mark.parametrize(("code", "body", "kind"), CASES.values(), ids=CASES)
def test_kind(code: int, body: bytes, kind: type[ClusterError]) -> None:
    error = _failure("/apis/example.com/v1/things", body, code)
    assert type(error) is kind
    assert error.message
    assert error.status == code


def test_what_is_not_served_is_named_with_the_likely_cause() -> None:
    path = "/apis/example.com/v1/things"
    error = _failure(path, b"404 page not found\n", 404)
    assert error.message == (
        f"the API server does not serve {path}: its definition is not installed, or still new"
    )
