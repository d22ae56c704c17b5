"""A steady load of completions, from a pod in the cluster, until standard input ends.

Runs as a program in any Python, with nothing but the standard library:

    python3 load.py URL MODEL LONG-TOKENS [KIND …]

Every kind of client is a thread of its own:

    short   a few tokens, over a new connection each time
    kept    a few tokens, over one connection for as long as the server keeps it open
    long    LONG-TOKENS as a stream, over one connection for as long as the server keeps it open

What is under way when the input ends is finished. Then one JSON line is printed for each request: kind, begin
and end in seconds since 1970, the number of tokens or null when it failed, and what went wrong.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.25
FEW_TOKENS = 8
PATIENCE_SECONDS = 180


def client(kind: str, url: str, model: str, long_tokens: int, ended: threading.Event) -> list[dict[str, Any]]:
    """Sends one request after the other; returns what became of them."""
    place = urlsplit(url).netloc
    connection = http.client.HTTPConnection(place, timeout=PATIENCE_SECONDS)
    results = []
    while not ended.wait(PAUSE_SECONDS):
        begin = time.time()
        try:
            tokens, wrong = ask(connection, model, long_tokens if kind == "long" else FEW_TOKENS), None
        except (OSError, ValueError, http.client.HTTPException) as failed:
            tokens, wrong = None, repr(failed)
            connection.close()
        results.append({"kind": kind, "begin": begin, "end": time.time(), "tokens": tokens, "wrong": wrong})
        if kind == "short":
            connection.close()
    connection.close()
    return results


def ask(connection: http.client.HTTPConnection, model: str, tokens: int) -> int:
    """Streams a completion; returns the number of its tokens. A stream without its end is a ValueError."""
    body = {"model": model, "prompt": " ba be bi", "max_tokens": tokens, "ignore_eos": True, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    lines = [line for line in answer.read().decode().splitlines() if line.startswith("data: ")]
    if answer.status != http.HTTPStatus.OK:
        raise ValueError(f"status {answer.status}")
    if not lines or lines[-1] != "data: [DONE]":
        raise ValueError(f"the stream broke off after {len(lines)} parts")
    return len(lines) - 1


def main(url: str, model: str, long_tokens: str, *kinds: str) -> None:
    ended = threading.Event()
    results: list[dict[str, Any]] = []

    def run(kind: str) -> None:
        results.extend(client(kind, url, model, int(long_tokens), ended))

    threads = [threading.Thread(target=run, args=(kind,)) for kind in kinds]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    for result in results:
        print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
