"""The command line of `vllm serve`, completed: architecture override and group.

argparse takes beginnings of options (`--model-arch X`), `=` or a separate value, and of duplicates the last;
vLLM's parser also takes `_` for `-`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

OVERRIDE = "--model-architecture-override"
HF_OVERRIDES = "--hf-overrides"
MASTER_PORT = 29501
"""vLLM's default."""
_SHORTEST = {OVERRIDE: len("--model-a"), HF_OVERRIDES: len("--hf-o")}
"""Beginnings that no other option of vLLM has."""


def with_architecture_override(arguments: Sequence[str]) -> list[str]:
    """`--model-architecture-override NAME` becomes part of --hf-overrides, which vLLM understands.

    Raises ValueError with text for the user.
    """
    names, rest = _taken(arguments, OVERRIDE)
    if not names:
        return rest
    given, rest = _taken(rest, HF_OVERRIDES)
    overrides = _json_object(given[-1]) if given else {}
    present = overrides.get("architectures", [names[-1]])
    if present != [names[-1]]:
        raise ValueError(
            f"{OVERRIDE} {names[-1]} contradicts the architectures {json.dumps(present)} in {HF_OVERRIDES}: "
            "give one of the two"
        )
    return [*rest, HF_OVERRIDES, json.dumps({**overrides, "architectures": [names[-1]]})]


def with_group(arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Rank, world and head as LeaderWorkerSet tells every pod, where the arguments do not say them."""
    size = int(environ.get("LWS_GROUP_SIZE") or 1)
    if size == 1:
        return list(arguments)
    rank = environ.get("LWS_WORKER_INDEX") or "0"
    wanted = {
        ("--nnodes", "-n"): ["--nnodes", str(size)],
        ("--node-rank", "-r"): ["--node-rank", rank],
        ("--master-addr",): ["--master-addr", environ.get("LWS_LEADER_ADDRESS") or ""],
        ("--headless",): ["--headless"] if rank != "0" else [],
    }
    added = [words for flags, words in wanted.items() if not any(_says(arguments, flag) for flag in flags)]
    return [*arguments, *(word for words in added for word in words)]


def head(arguments: Sequence[str]) -> tuple[str, int] | None:
    """Where the ranks of a group meet, --master-addr and --master-port; None without a group."""
    nodes = _last(arguments, "--nnodes") or _last(arguments, "-n") or "1"
    address = _last(arguments, "--master-addr")
    if nodes == "1" or not address:
        return None
    return address, int(_last(arguments, "--master-port") or MASTER_PORT)


def api_key(arguments: Sequence[str]) -> str | None:
    """What the server asks of its clients, when that stands in its arguments."""
    return _last(arguments, "--api-key")


def is_headless(arguments: Sequence[str]) -> bool:
    return _says(arguments, "--headless")


def _taken(arguments: Sequence[str], flag: str) -> tuple[list[str], list[str]]:
    """All values of an option, and the arguments without it."""
    values, rest = [], []
    tokens = iter(arguments)
    for token in tokens:
        if not _means(token, flag):
            rest.append(token)
            continue
        _, equals, value = token.partition("=")
        value = value if equals else next(tokens, "")
        if not value or value.startswith("--"):
            raise ValueError(f"{flag} needs a value")
        values.append(value)
    return values, rest


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"{HF_OVERRIDES} {text} is no JSON object")
    return value


def _last(arguments: Sequence[str], flag: str) -> str | None:
    values = list(_values(arguments, flag))
    return values[-1] if values else None


def _values(arguments: Sequence[str], flag: str) -> Iterator[str]:
    for token, following in zip(arguments, [*arguments[1:], ""]):
        if _means(token, flag):
            _, equals, value = token.partition("=")
            yield value if equals else following


def _says(arguments: Sequence[str], flag: str) -> bool:
    return any(_means(token, flag) for token in arguments)


def _means(token: str, flag: str) -> bool:
    name = token.partition("=")[0]
    if not name.startswith("--"):
        return name == flag
    name = name.replace("_", "-")
    return len(name) >= _SHORTEST.get(flag, 6) and flag.startswith(name)
