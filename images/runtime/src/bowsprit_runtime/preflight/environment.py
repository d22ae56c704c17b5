"""Hears who changes the environment: what vLLM's own modules set when a plugin imports them is not the
plugin's doing.

Taken at the class of os.environ, the one place where a change is seen together with the code that makes it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from bowsprit_runtime.preflight.causes import within


@contextmanager
def changes(engine: Path | None) -> Iterator[set[str]]:
    """At the end of the block, names of variables that other code than that in the folder `engine` has
    changed."""
    before = dict(os.environ)
    touched: set[str] = set()
    changed: set[str] = set()

    def heard(method: str) -> Any:
        done = getattr(os._Environ, method)

        def hearing(environ: Any, name: Any, *value: Any) -> None:
            if engine is None or not within(_author(), [str(engine)]):
                touched.add(os.fsdecode(name))
            done(environ, name, *value)

        return mock.patch.object(os._Environ, method, hearing)

    with heard("__setitem__"), heard("__delitem__"):
        yield changed
    changed.update(name for name in touched if before.get(name) != os.environ.get(name))


def _author() -> str:
    """The file of the code that called os.environ."""
    frame = sys._getframe(2)
    while frame.f_back and (frame.f_code.co_filename in _WAY or "<frozen" in frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename


_WAY = (os.__file__, sys.modules["_collections_abc"].__file__)
"""What a change goes through: os.environ.pop and its like are methods of theirs."""
