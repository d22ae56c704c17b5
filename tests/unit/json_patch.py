"""RFC 6902 as far as Bowsprit uses it: what an API server makes of a JSON patch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any


class TestFailed(Exception):
    """A `test` found something else, so nothing of the patch is done."""

    __test__ = False


def patched(before: Mapping[str, Any], operations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The object after `test`, `add` and `remove`."""
    after = deepcopy(dict(before))
    for step in operations:
        *parents, last = step["path"].strip("/").split("/")
        target: Any = after
        try:
            for parent in parents:
                target = target[int(parent)] if isinstance(target, list) else target[parent]
            where = int(last) if isinstance(target, list) else last
            found = target[where] if step["op"] != "add" else None
        except LookupError as error:
            raise TestFailed(step["path"]) from error
        if step["op"] == "remove":
            del target[where]
        elif step["op"] == "add":
            target[where] = step["value"]
        elif found != step["value"]:
            raise TestFailed(step["path"])
    return after
