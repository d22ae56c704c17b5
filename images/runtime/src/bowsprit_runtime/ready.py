"""Readiness of a pod that answers requests: its own server lists the model under its served name.

A healthy server is not enough, and a plain HTTP probe cannot show an API key. The key is taken from the
environment, as vLLM takes it. Where it stands in vLLM's arguments instead, the server answers 401: it serves,
and the name is the one on its command line.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
from typing import Any
from urllib.parse import urlsplit

from bowsprit_runtime import self_check

SECONDS = 4
"""Less than the probe's own time limit, so that the reason is told."""
_MOST_BYTES = 1 << 20


def main(arguments: list[str]) -> int:
    """`ready URL NAME`: 0 when the server at URL lists the model NAME, and has passed its self-check."""
    wrong = why_not(arguments[0], arguments[1], os.environ.get("VLLM_API_KEY"))
    if not wrong and self_check.is_open(os.environ):
        wrong = "the request of spec.rollout.verify is not answered yet"
    if wrong:
        print(f"bowsprit: {wrong}")
    return 1 if wrong else 0


def why_not(url: str, name: str, key: str | None) -> str:
    """What keeps the pod from being ready; empty when nothing does."""
    try:
        status, body = _models(url, key)
    except (OSError, http.client.HTTPException) as silent:
        return f"{url}/v1/models does not answer: {silent}"
    if status == http.HTTPStatus.UNAUTHORIZED:
        return ""
    if status != http.HTTPStatus.OK:
        return f"{url}/v1/models answers {status}"
    names = _names(body)
    return "" if name in names else f"{url}/v1/models lists {', '.join(names) or 'no model'}, not {name}"


def _models(url: str, key: str | None) -> tuple[int, bytes]:
    asking = connection(url, SECONDS)
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        asking.request("GET", "/v1/models", headers=headers)
        answer = asking.getresponse()
        return answer.status, answer.read(_MOST_BYTES)
    finally:
        asking.close()


def connection(url: str, seconds: float) -> http.client.HTTPConnection:
    """To the pod's own server."""
    place = urlsplit(url)
    if place.scheme != "https":
        return http.client.HTTPConnection(place.netloc, timeout=seconds)
    # The certificate is for the name that clients use, and this is the pod itself.
    anybody = ssl._create_unverified_context()
    return http.client.HTTPSConnection(place.netloc, timeout=seconds, context=anybody)


def _names(body: bytes) -> list[str]:
    try:
        listed: Any = json.loads(body)
        return [str(model["id"]) for model in listed["data"]]
    except (ValueError, KeyError, TypeError):
        return []
