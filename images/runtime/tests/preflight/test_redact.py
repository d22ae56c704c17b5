"""No value of the environment is told, unless its name is known to hold no secret."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowsprit_runtime.preflight.redact import SHORTEST, redacted, secrets

VALUE = st.text(st.characters(codec="ascii", exclude_characters="[]"), min_size=SHORTEST).filter(
    lambda value: len(value.strip()) >= SHORTEST
)


@given(st.dictionaries(st.from_regex(r"[A-Z]{3,8}_LOGIN", fullmatch=True), VALUE, min_size=1), st.text())
def test_no_value_is_left_in_any_text(environ: dict[str, str], text: str) -> None:
    whole = text.join(["", *environ.values(), ""])
    left = redacted(whole, secrets(environ, []))
    for value in environ.values():
        if value not in "".join(f"[value of {name}]" for name in environ):
            assert value not in left.replace("[value of ", "")


TEXTS = {
    "an unknown name is taken for a secret": (
        {"DATABASE": "postgres1"},
        "at postgres1",
        "at [value of DATABASE]",
    ),
    "a known name is not": ({"HF_HOME": "/models/hf"}, "in /models/hf", "in /models/hf"),
    "a known beginning with a secret's name is": (
        {"HF_TOKEN": "hf_abcdefg"},
        "with hf_abcdefg",
        "with [value of HF_TOKEN]",
    ),
    "short values are words": ({"MODE": "fast"}, "too fast", "too fast"),
    "of two values the longer goes first": (
        {"A": "abcdefgh", "B": "abcdefghij"},
        "abcdefghij",
        "[value of B]",
    ),
    "each line of a value is one": (
        {"CERTIFICATE": "line-one-1\nline-two-2"},
        "line-two-2",
        "[value of CERTIFICATE]",
    ),
    "as Python quotes it": (
        {"PHRASE": "a\\b\tc'd\"e"},
        repr({"PHRASE": "a\\b\tc'd\"e"}),
        "{'PHRASE': '[value of PHRASE]'}",
    ),
    "as JSON quotes it": ({"PHRASE": 'say "é"'}, json.dumps('say "é"'), '"[value of PHRASE]"'),
    "as a URL quotes it": ({"PHRASE": "p@ss w/rd"}, "?p=p%40ss%20w%2Frd", "?p=[value of PHRASE]"),
    "in one line": ({"PHRASE": "two  words\there"}, "two words here", "[value of PHRASE]"),
    "what is short in one line is a word": ({"PHRASE": "a      b"}, "a b", "a b"),
    "credentials in a URL": ({}, "https://me:pass@index/wheels", "https://index/wheels"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_what_is_left(case: str) -> None:
    environ, text, left = TEXTS[case]
    assert redacted(text, secrets(environ, [])) == left


@pytest.mark.parametrize(
    "arguments",
    [
        ["--api-key", "topsecret1"],
        ["--api-key=topsecret1"],
        ["--api_key", "another-secret", "topsecret1"],
        ["--api-k", "topsecret1"],
        ["--hf-token", "topsecret1"],
    ],
    ids=" ".join,
)
def test_a_secret_argument_is_hidden_in_every_spelling(arguments: list[str]) -> None:
    assert redacted("refused topsecret1", secrets({}, arguments)) == "refused [hidden]"


def test_other_arguments_are_told() -> None:
    assert (
        redacted("refused 4096-tokens", secrets({}, ["--max-model-len", "4096-tokens"]))
        == "refused 4096-tokens"
    )
