"""Flags that Bowsprit sets itself are refused in every spelling that vLLM's parser takes; no other flag is.

The oracle is argparse with vLLM's own list of flags: what it takes for an owned flag, the rules must refuse.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bowsprit.api.reserved import OWNED, STREAMER
from bowsprit.api.validate import validate
from tests.unit.api.flags import owner_of
from tests.unit.api.manifests import args

FLAGS_FILE = Path(__file__).resolve().parents[4] / "shared" / "reference" / "vllm_serve_flags.json"
needs_flags = pytest.mark.skipif(not FLAGS_FILE.exists(), reason="vLLM's list of flags is not there")


def vllm_flags() -> list[dict[str, Any]]:
    return list(json.loads(FLAGS_FILE.read_text())["flags"]) if FLAGS_FILE.exists() else []


def names(option: dict[str, Any]) -> list[str]:
    return [flag for flag in option["flags"] if flag.startswith("-")]


def is_owned(flag: str) -> bool:
    return any(fnmatch.fnmatchcase(flag, own) for entry in OWNED for own in entry.flags)


ALL = [flag for option in vllm_flags() for flag in names(option)]
OWN = [flag for flag in ALL if is_owned(flag)]
OTHERS = [flag for flag in ALL if not is_owned(flag)]


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    """argparse with all of vLLM's flags; each tells under which of its names it is known."""
    parser = argparse.ArgumentParser(add_help=False)
    for option in vllm_flags():
        if flags := names(option):
            parser.add_argument(*flags, dest=flags[0], nargs="?")
    return parser


def resolved(parser: argparse.ArgumentParser, argument: str) -> list[str]:
    """The first names of the flags that argparse takes an argument for; several are its error "ambiguous"."""
    exact = parser._option_string_actions.get(argument)
    actions = [exact] if exact else [found[0] for found in parser._get_option_tuples(argument)]
    return [action.dest for action in actions]


def spellings(flag: str) -> Iterator[str]:
    yield from (flag, f"{flag}=4", f"{flag}.key+")
    if flag.startswith("--"):
        yield "--" + flag[2:].replace("-", "_")
        yield "--" + flag[2:].replace("-", "_") + "=4"
        yield "--" + flag[2:].replace("-", "_", 1) + ".key=4"


def beginnings(flag: str) -> Iterator[str]:
    dashes = 2 if flag.startswith("--") else 1
    return (flag[:end] for end in range(dashes + 1, len(flag) + 1))


@needs_flags
def test_the_list_of_flags_names_all_that_are_owned() -> None:
    """A flag that vLLM has renamed, and that stands here under its old name, would be a hole."""
    unknown = [own for entry in (*OWNED, STREAMER) for own in entry.flags if not fnmatch.filter(ALL, own)]
    assert unknown == []
    assert len(OWN) > 50


@needs_flags
@pytest.mark.parametrize("flag", OWN)
def test_an_owned_flag_is_refused_in_every_spelling(flag: str, parser: argparse.ArgumentParser) -> None:
    for beginning in beginnings(flag):
        targets = resolved(parser, beginning)
        if len(targets) == 1 and is_owned(targets[0]):
            for spelling in spellings(beginning):
                assert owner_of(spelling), f"{spelling} sets {targets[0]}"


@needs_flags
@pytest.mark.parametrize("flag", OTHERS)
def test_no_other_flag_is_refused(flag: str, parser: argparse.ArgumentParser) -> None:
    for beginning in beginnings(flag):
        targets = resolved(parser, beginning)
        if len(targets) == 1 and not is_owned(targets[0]):
            for spelling in spellings(beginning):
                assert owner_of(spelling) is None, f"{spelling} sets {targets[0]}"


@pytest.mark.parametrize("argument", ["-n4", "-n=4", "-r0", "-t", "-e", "-p", "-d"])
def test_short_flags_are_refused_with_their_value_attached_and_abbreviated(argument: str) -> None:
    assert owner_of(argument)


@pytest.mark.parametrize("argument", ["4", "tensor-parallel-size", "-1", "-O3", "-q=fp8", "--", "-"])
def test_values_and_other_short_flags_pass(argument: str) -> None:
    assert owner_of(argument) is None


def test_the_message_names_the_flag_and_the_field_to_set_instead() -> None:
    (problem,) = validate(args("--seed=1", "--gpu_memory_util=0.5"))
    assert problem.field == "spec.engine.args[1]"
    assert "--gpu-memory-utilization" in problem.message
    assert "set spec.capacity.gpuMemoryUtilization" in problem.message
