"""Which modules a quantization list names, decided in linear time: the patterns come from strangers.

Publishers list modules as plain names ("lm_head", "model.layers.0.mlp.gate"), globs
("model.layers.3.self_attn*") and regular expressions ("re:.*self_attn.*"). A hostile regular expression can
run for years, so they are not run: the part of the language that checkpoints use is translated into globs,
and the rest matches nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

_MAX_GLOBS = 64
"""Globs that span all layers, and globs of any one layer; published checkpoints have fewer than 20."""
_MAX_NUMBERED = 4
"""Globs that span layers and hold digits, so that each layer has to be matched anew."""
_MAX_LENGTH = 500
"""Characters of a pattern; module names are far shorter, so that a longer one matches nothing."""
_MAX_ALTERNATIVES = 64

_SYNONYMS = (
    ("transformer.h.", "layers."),
    ("block_sparse_moe", "mlp"),
    ("feed_forward", "mlp"),
    (".w1", ".gate_proj"),
    (".w3", ".up_proj"),
    (".w2", ".down_proj"),
)
_LANGUAGE_MODEL = frozenset(
    {"", "model", "language_model", "backbone", "decoder", "transformer", "thinker", "text_model", "llm"}
)
_LAYER = re.compile(r"layers\.(\d{1,4})\.")
_DIGIT = re.compile(r"\d")
_ANY = re.compile(r"\.\*|\.\+|\\d\+|\[0-9\]\+|\\d\*")
_GROUP = re.compile(r"\((?:\?:)?([^()]*)\)")
_NOT_UNDERSTOOD = re.compile(r"[\\\[\](){}+?|^$]")


class TooManyPatterns(ValueError):
    """More globs than any published checkpoint has; matching them all would take too long."""


class Patterns:
    """Matches names of the form `layers.<i>.<module path>` or `lm_head`."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._by_layer: dict[str, list[list[str]]] = defaultdict(list)
        self._numbered: list[list[str]] = []
        self._general: list[list[str]] = []
        self._general_answers: dict[str, bool] = {}
        for pattern in patterns:
            for glob in _globs(pattern) if len(pattern) <= _MAX_LENGTH else ():
                self._add(_canonical(glob))

    def _add(self, glob: str) -> None:
        if "*" not in glob:
            self._plain.add(glob)
        elif layer := _LAYER.match(glob):
            _append(self._by_layer[layer[1]], glob, _MAX_GLOBS)
        elif _DIGIT.search(glob):
            _append(self._numbered, glob, _MAX_NUMBERED)
        else:
            _append(self._general, glob, _MAX_GLOBS)

    def matches(self, name: str) -> bool:
        """A plain name covers every module below it, wherever it stands in the path."""
        if any(run in self._plain for run in _runs(name)):
            return True
        layer = _LAYER.match(name)
        own = self._by_layer.get(layer[1], []) if layer else []
        return any(_glob_matches(parts, name) for parts in (*own, *self._numbered)) or self._in_general(name)

    def _in_general(self, name: str) -> bool:
        """Globs without digits answer alike for all layers, so each module is matched once."""
        module = _LAYER.sub("layers.0.", name)
        if module not in self._general_answers:
            answer = any(_glob_matches(parts, module) for parts in self._general)
            self._general_answers[module] = answer
        return self._general_answers[module]


def _append(globs: list[list[str]], glob: str, most: int) -> None:
    if len(globs) == most:
        raise TooManyPatterns(f"more than {most} patterns with a wildcard for the same layers")
    globs.append(glob.split("*"))


def _globs(pattern: str) -> Iterator[str]:
    if not pattern.startswith("re:"):
        yield pattern
        return
    body = pattern[3:].removeprefix("^")
    body = body.removesuffix("$") if body.endswith("$") else body + ".*"
    for alternative in _alternatives(_ANY.sub("*", body).replace("\\.", ".")):
        if not _NOT_UNDERSTOOD.search(alternative):
            yield alternative


def _alternatives(body: str) -> list[str]:
    """`a(b|c)d` as `abd`, `acd`; innermost groups first."""
    done: list[str] = []
    todo = [body]
    while todo and len(done) + len(todo) <= _MAX_ALTERNATIVES:
        text = todo.pop()
        group = _GROUP.search(text)
        if group is None:
            done.append(text)
        else:
            todo.extend(
                text[: group.start()] + choice + text[group.end() :] for choice in group[1].split("|")
            )
    return done


def _canonical(name: str) -> str:
    """Without the path to the language model's layers; towers and drafting heads have layers of their own."""
    for theirs, ours in _SYNONYMS:
        name = name.replace(theirs, ours)
    before, found, after = name.partition("layers.")
    language = set(before.split(".")) <= _LANGUAGE_MODEL
    anywhere = before == "*" and _LAYER.match(found + after)
    return found + after if found and (language or anywhere) else name


def _runs(name: str) -> Iterator[str]:
    """Every run of consecutive path components."""
    parts = name.split(".")
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            yield ".".join(parts[start:end])


def _glob_matches(parts: list[str], name: str) -> bool:
    """`parts` is a glob cut at its stars; it may name a module above `name`."""
    return _whole(parts, name) or _whole([*parts[:-1], f"{parts[-1]}.", ""], name)


def _whole(parts: list[str], name: str) -> bool:
    first, *middle, last = parts
    if not name.startswith(first):
        return False
    at = len(first)
    for part in middle:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - len(last) >= at and name.endswith(last)
