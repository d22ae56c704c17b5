"""Kubernetes objects from files: YAML or JSON, one document or many, single or in Lists.

Files come from anywhere, so reading is bounded and never guesses: a size limit, no YAML aliases (a few
lines of them grow to gigabytes), no key twice, text only. Values keep the meaning that kubectl gives them
(scalars.py): an unquoted date stays text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bowsprit.cli import scalars
from bowsprit.cli.problems import Place, Problem

MANIFEST_LIMIT_MIB = 16
INVENTORY_LIMIT_MIB = 256
SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


class Document(NamedTuple):
    place: Place
    body: dict[str, Any]


class Unreadable(Exception):
    """A file, or the rest of it, that holds no documents; the message says why."""


class Read(NamedTuple):
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def read_files(paths: list[str], limit_mib: int = MANIFEST_LIMIT_MIB) -> Read:
    """Read every object of every file; folders are searched for *.yaml, *.yml and *.json, in sorted order."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for path in paths:
        for file in _files(path):
            read = _read_file(file, limit_mib)
            documents += read.documents
            problems += read.problems
    return Read(tuple(documents), tuple(problems))


def _files(path: str) -> list[str]:
    folder = Path(path)
    if path == STDIN or not folder.is_dir():
        return [path]
    found = sorted(str(file) for file in folder.rglob("*") if file.suffix in SUFFIXES and not file.is_dir())
    return found or [path]


def _read_file(file: str, limit_mib: int) -> Read:
    documents: list[Document] = []
    problems: list[Problem] = []
    number = 0
    try:
        text = _text(file, limit_mib)
    except Unreadable as error:
        return Read((), (Problem(Place(file), "", str(error)),))
    try:
        for number, body in enumerate(_parse(file, text), start=1):
            place = Place(file, number)
            if isinstance(body, dict):
                documents.append(Document(place, body))
            else:
                problems.append(not_an_object(place, body))
    except Unreadable as error:
        problems.append(Problem(Place(file, number + 1), "", str(error)))
    if number == 0 and not problems:
        problems.append(Problem(Place(file), "", "the file holds no document"))
    return Read(tuple(documents), tuple(problems))


def not_an_object(place: Place, body: Any) -> Problem:
    kind = type(body).__name__
    return Problem(place, "", f"must be an object with apiVersion and kind, not a {kind}")


def _text(file: str, limit_mib: int) -> str:
    limit = limit_mib * 2**20
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(limit + 1)
    except IsADirectoryError as error:
        raise Unreadable(
            f"the folder holds no {', '.join('*' + suffix for suffix in SUFFIXES)} file"
        ) from error
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise Unreadable(f"larger than {limit_mib} MiB, the most that is read here")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not text: byte {error.start} is not UTF-8") from error


def _parse(file: str, text: str) -> Iterator[Any]:
    """The documents that are not empty; raises Unreadable at the first fault."""
    try:
        if file.endswith(".json"):
            if text.strip():
                yield json.loads(text, object_pairs_hook=_unique)
            return
        _refuse_aliases(text)
        yield from (body for body in yaml.load_all(text, _Loader) if body is not None)
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: line {error.lineno}: {error.msg}") from error
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML: {_yaml_words(error)}") from error
    except RecursionError as error:
        raise Unreadable("nested too deeply to be read") from error
    except ValueError as error:
        raise Unreadable(str(error)) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


class _Loader(yaml.CSafeLoader):
    """YAML as kubectl reads it: keys are texts and stand once, and words mean the same."""

    yaml_implicit_resolvers = scalars.READ
    bool_values = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        return scalars.whole_number(self.construct_scalar(node))

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep=deep)
        line = node.start_mark.line + 1
        if odd := [key for key in found if not isinstance(key, str)]:
            raise ValueError(f"the object at line {line} has the key {odd[0]!r}, which is not text; quote it")
        if len(found) < len(node.value):
            raise ValueError(f"a key stands twice in the object at line {line}")
        return found


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _refuse_aliases(text: str) -> None:
    if "*" not in text:
        return
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else "?"
            raise Unreadable(f"line {line} has the YAML alias *{event.anchor}; write its value out")


def _yaml_words(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem or error.context}"
    return " ".join(str(error).split())


def objects(read: Read) -> Read:
    """The same with every List opened: its items are documents of their own."""
    documents: list[Document] = []
    problems = list(read.problems)
    for document in read.documents:
        if not str(document.body.get("kind", "")).endswith("List") or "items" not in document.body:
            documents.append(document)
            continue
        items = document.body["items"]
        if not isinstance(items, list):
            problems.append(Problem(document.place, "items", "must be a list"))
            continue
        for index, item in enumerate(items):
            place = document.place._replace(item=f"items[{index}].")
            if isinstance(item, dict):
                documents.append(Document(place, item))
            else:
                problems.append(not_an_object(place, item))
    return Read(tuple(documents), tuple(problems))
