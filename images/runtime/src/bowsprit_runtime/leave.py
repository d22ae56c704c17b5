"""The end of a pod that answers requests: its clients are sent elsewhere before vLLM is told to stop.

A pod that is deleted gets no new connections once every proxy has dropped it, but those that are open stay
with it, and vLLM answers 500 to whatever comes over them while it drains. So from the pre-stop on every
answer closes its connection; the client opens its next one to another pod. A connection on which a long
answer was under way is closed by the answer after it, so vLLM goes on serving until nothing has been
answered for longer than it keeps an idle connection open.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

MIDDLEWARE = "bowsprit_runtime.leave.CloseConnections"
"""As `vllm serve --middleware` wants it."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def main(arguments: list[str]) -> int:
    """`leave LEAST MOST`: returns after LEAST seconds, or later, when the pod's clients have gone; at most
    after MOST."""
    least, most = (float(seconds) for seconds in arguments)
    began, quiet = time.time(), _quiet_seconds()
    try:
        _mark().touch()
    except OSError as refused:
        print(f"bowsprit: connections stay open, for {_mark()} cannot be written ({refused.strerror})")
    while time.time() < began + most:
        if time.time() >= max(began + least, _answered() + quiet):
            break
        time.sleep(0.5)
    return 0


def stay() -> None:
    """Called before the server starts: of the container before this one, which was told to leave and started
    again, nothing counts. The folder may outlive it, where the user's template mounts a volume there."""
    _mark().unlink(missing_ok=True)


def _quiet_seconds() -> float:
    """A second more than vLLM keeps an idle connection open."""
    return float(os.environ.get("VLLM_HTTP_TIMEOUT_KEEP_ALIVE") or 5) + 1


def _answered() -> float:
    try:
        return _mark().stat().st_mtime
    except OSError:
        return 0


class CloseConnections:
    """ASGI middleware of vLLM's server: without effect until the pod leaves."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Probes and metrics are asked for by GET, for ever.
        is_work = scope["method"] != "GET"

        async def send_closing(message: Message) -> None:
            mark = _mark()
            if mark.exists():
                if is_work:
                    os.utime(mark)
                if message["type"] == "http.response.start":
                    message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, send_closing)


def _mark() -> Path:
    """The file that says that the pod leaves, and when a part of an answer was sent last."""
    return Path(tempfile.gettempdir(), "bowsprit-leaves")
